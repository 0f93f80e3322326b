"""Uploads, and which conversations refer to them. The bytes are elsewhere: `files`."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Final

from deskwire.engine.uploads.ports import Content, Doomed
from deskwire.engine.uploads.upload import Upload, quota_exceeded
from deskwire.storage.scrub import ScrubWish

_COLUMNS: Final = "id, project, name, type, size, sha256, created_at"


class UploadReads:
    """Queries on uploads; the methods are those of `uploads.ports.UploadReader`."""

    conn: sqlite3.Connection

    def upload(self, project: int | None, upload_id: str) -> Upload | None:
        row = self.conn.execute(f"SELECT {_COLUMNS} FROM uploads WHERE id = ?", (upload_id,)).fetchone()
        return None if row is None or project not in (None, row[1]) else Upload(*row)

    def uploads_size(self, project: int) -> int:
        row = self.conn.execute("SELECT bytes FROM upload_usage WHERE project = ?", (project,)).fetchone()
        return 0 if row is None else int(row[0])

    def without_upload(self, contents: Sequence[Content]) -> Sequence[Content]:
        return [content for content in contents if not self._referred_to(content)]

    def doomed_contents(self, limit: int) -> Sequence[Doomed]:
        rows = self.conn.execute(
            "SELECT rowid, project, sha256 FROM doomed_files ORDER BY rowid LIMIT ?", (limit,)
        )
        return [Doomed(row[0], Content(row[1], row[2])) for row in rows]

    def _referred_to(self, content: Content) -> bool:
        row = self.conn.execute(
            "SELECT 1 FROM uploads WHERE project = ? AND sha256 = ? LIMIT 1",
            (content.project, content.sha256),
        ).fetchone()
        return row is not None


class UploadWrites(UploadReads, ScrubWish):
    """Changes of uploads; the methods are those of `uploads.ports.UploadTransaction`."""

    conn: sqlite3.Connection

    def insert_upload(self, upload: Upload, quota: int) -> None:
        if not self._referred_to(Content(upload.project, upload.sha256)):
            if self.uploads_size(upload.project) + upload.size > quota:
                raise quota_exceeded(quota)
            self._take_room(upload.project, upload.size)
        self.conn.execute(
            f"INSERT INTO uploads ({_COLUMNS}, attached) VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
            (
                upload.id,
                upload.project,
                upload.name,
                upload.type,
                upload.size,
                upload.sha256,
                upload.created_at,
            ),
        )

    def attach_uploads(self, project: int, conversation: int, upload_ids: Collection[str]) -> Collection[str]:
        missing = []
        for upload_id in upload_ids:
            row = self.conn.execute(
                "UPDATE uploads SET attached = 1 WHERE id = ? AND project = ? RETURNING rowid",
                (upload_id, project),
            ).fetchone()
            if row is None:
                missing.append(upload_id)
            else:
                self.conn.execute("INSERT OR IGNORE INTO attachments VALUES (?, ?)", (row[0], conversation))
        return missing

    def detach_uploads(self, conversation: int) -> None:
        """Remove a conversation's references, and the uploads that no other conversation refers to."""
        rows = self.conn.execute(
            "DELETE FROM attachments WHERE conversation = ? RETURNING upload", (conversation,)
        ).fetchall()
        for (upload,) in rows:
            other = self.conn.execute("SELECT 1 FROM attachments WHERE upload = ?", (upload,)).fetchone()
            if other is None:
                self._delete_upload(upload)

    def expire_uploads(self, older_than: int, limit: int) -> int:
        rows = self.conn.execute(
            "SELECT rowid FROM uploads WHERE attached = 0 AND created_at < ? ORDER BY created_at LIMIT ?",
            (older_than, limit),
        ).fetchall()
        for (upload,) in rows:
            self._delete_upload(upload)
        if rows:
            self.want_scrub()
        return len(rows)

    def remove_upload(self, upload: Upload) -> bool:
        row = self.conn.execute(
            "SELECT rowid FROM uploads WHERE id = ? AND attached = 0", (upload.id,)
        ).fetchone()
        if row is None:
            return False
        self._delete_upload(row[0])
        self.want_scrub()
        return True

    def forget_doomed(self, rowid: int) -> None:
        self.conn.execute("DELETE FROM doomed_files WHERE rowid = ?", (rowid,))

    def _delete_upload(self, rowid: int) -> None:
        project, sha256, size = self.conn.execute(
            "DELETE FROM uploads WHERE rowid = ? RETURNING project, sha256, size", (rowid,)
        ).fetchone()
        if not self._referred_to(Content(project, sha256)):
            self._take_room(project, -size)
            self.conn.execute("INSERT INTO doomed_files (project, sha256) VALUES (?, ?)", (project, sha256))

    def _take_room(self, project: int, size: int) -> None:
        self.conn.execute(
            "INSERT INTO upload_usage VALUES (?, ?) ON CONFLICT (project) DO UPDATE SET bytes = bytes + excluded.bytes",
            (project, size),
        )
        # A project that holds nothing has no row: it may be removed.
        self.conn.execute("DELETE FROM upload_usage WHERE project = ? AND bytes = 0", (project,))
