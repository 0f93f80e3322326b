"""Uploads, their references from conversations, and the entries of a file store that nodes share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from deskwire.engine.uploads.ports import FileContent, OrphanedContent
from deskwire.engine.uploads.upload import Upload, quota_exceeded
from deskwire.storage.tables.base import Changes, Queries

_COLUMNS: Final = "id, project, name, type, size, sha256, created_at, contact"


class UploadReads(Queries):
    """Queries on uploads; the methods are those of `uploads.ports.UploadReader`."""

    def upload(self, project: int | None, upload_id: str) -> Upload | None:
        row = self.conn.execute(f"SELECT {_COLUMNS} FROM uploads WHERE id = ?", (upload_id,)).fetchone()
        return None if row is None or project not in (None, row[1]) else Upload(*row)

    def is_attached(self, upload_id: str) -> bool:
        row = self.conn.execute("SELECT attached FROM uploads WHERE id = ?", (upload_id,)).fetchone()
        return row is not None and bool(row[0])

    def uploads_size(self, project: int) -> int:
        row = self.conn.execute("SELECT bytes FROM upload_usage WHERE project = ?", (project,)).fetchone()
        return 0 if row is None else int(row[0])

    def contents_without_upload(self, contents: Sequence[FileContent]) -> Sequence[FileContent]:
        return [content for content in contents if not self._referred_to(content)]

    def orphaned_contents(self, limit: int) -> Sequence[OrphanedContent]:
        rows = self.conn.execute(
            "SELECT rowid, project, sha256 FROM doomed_files ORDER BY rowid LIMIT ?", (limit,)
        )
        return [OrphanedContent(row[0], FileContent(row[1], row[2])) for row in rows]

    def content_entry(self, content: FileContent) -> int | None:
        row = self.conn.execute(
            "SELECT rowid FROM contents WHERE project = ? AND sha256 = ? AND going = 0",
            (content.project, content.sha256),
        ).fetchone()
        return None if row is None else int(row[0])

    def abandoned_contents(self, older_than: int, limit: int) -> Sequence[FileContent]:
        rows = self.conn.execute(
            "SELECT c.project, c.sha256, c.rowid FROM contents c WHERE c.going = 1 OR c.made_at < ? AND NOT EXISTS "
            "(SELECT 1 FROM uploads u WHERE u.project = c.project AND u.sha256 = c.sha256) ORDER BY c.rowid LIMIT ?",
            (older_than, limit),
        )
        return [FileContent(*row) for row in rows]

    def contents_without_entry(self, contents: Sequence[FileContent]) -> Sequence[FileContent]:
        sql = "SELECT 1 FROM contents WHERE rowid = ? AND project = ? AND sha256 = ?"
        return [
            content
            for content in contents
            if self.conn.execute(sql, (content.entry, content.project, content.sha256)).fetchone() is None
        ]

    def _referred_to(self, content: FileContent) -> bool:
        row = self.conn.execute(
            "SELECT 1 FROM uploads WHERE project = ? AND sha256 = ? LIMIT 1",
            (content.project, content.sha256),
        ).fetchone()
        return row is not None


class UploadWrites(UploadReads, Changes):
    """Changes of uploads; the methods are those of `uploads.ports.UploadTransaction`."""

    def insert_upload(self, upload: Upload, quota: int) -> None:
        if not self._referred_to(FileContent(upload.project, upload.sha256)):
            if self.uploads_size(upload.project) + upload.size > quota:
                raise quota_exceeded(quota)
            self._take_room(upload.project, upload.size)
        self.conn.execute(
            f"INSERT INTO uploads ({_COLUMNS}, attached) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
            (
                upload.id,
                upload.project,
                upload.name,
                upload.type,
                upload.size,
                upload.sha256,
                upload.created_at,
                upload.contact,
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
                self.conn.execute(
                    "INSERT INTO attachments VALUES (?, ?) ON CONFLICT (upload, conversation) DO NOTHING",
                    (row[0], conversation),
                )
        return missing

    def detach_uploads(self, conversation: int) -> None:
        """Remove a conversation's references, and uploads without any other reference."""
        rows = self.conn.execute(
            "DELETE FROM attachments WHERE conversation = ? RETURNING upload", (conversation,)
        ).fetchall()
        for (upload,) in rows:
            self._delete_unless_attached(upload)

    def detach_these(self, conversation: int, upload_ids: Collection[str]) -> None:
        """Remove a conversation's references to these uploads, and uploads without any other reference."""
        for upload_id in upload_ids:
            row = self.conn.execute(
                "DELETE FROM attachments WHERE conversation = ? AND upload = (SELECT rowid FROM uploads WHERE id = ?) "
                "RETURNING upload",
                (conversation, upload_id),
            ).fetchone()
            if row is not None:
                self._delete_unless_attached(row[0])

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

    def erase_uploads_of_contact(self, contact: int) -> None:
        """Delete the unattached uploads that a contact sent. Those of messages are deleted with their conversations."""
        rows = self.conn.execute(
            "SELECT u.rowid FROM contacts k JOIN uploads u ON u.contact = k.id WHERE k.rowid = ? AND u.attached = 0",
            (contact,),
        ).fetchall()
        for (upload,) in rows:
            self._delete_upload(upload)
        if rows:
            self.want_scrub()

    def remove_upload(self, upload: Upload) -> bool:
        row = self.conn.execute(
            "SELECT rowid FROM uploads WHERE id = ? AND attached = 0", (upload.id,)
        ).fetchone()
        if row is None:
            return False
        self._delete_upload(row[0])
        self.want_scrub()
        return True

    def delete_orphan(self, rowid: int) -> None:
        self.conn.execute("DELETE FROM doomed_files WHERE rowid = ?", (rowid,))

    def claim_content(self, content: FileContent, now: int) -> int:
        row = self.conn.execute(
            "INSERT INTO contents (project, sha256, made_at, going) VALUES (?, ?, ?, 0) "
            "ON CONFLICT (project, sha256) WHERE going = 0 DO UPDATE SET made_at = excluded.made_at RETURNING rowid",
            (content.project, content.sha256, now),
        ).fetchone()
        return int(row[0])

    def lock_content_entry(self, entry: int) -> bool:
        # An UPDATE takes a row lock, so this and `retire_content` are serialized, and the second one sees the first.
        sql = "UPDATE contents SET made_at = made_at WHERE rowid = ? AND going = 0 RETURNING rowid"
        return self.conn.execute(sql, (entry,)).fetchone() is not None

    def retire_content(self, content: FileContent) -> Sequence[int]:
        key = content.project, content.sha256
        self.conn.execute(
            "UPDATE contents SET made_at = made_at WHERE project = ? AND sha256 = ? AND going = 0", key
        )
        if not self._referred_to(content):
            self.conn.execute(
                "UPDATE contents SET going = 1 WHERE project = ? AND sha256 = ? AND going = 0", key
            )
        rows = self.conn.execute(
            "SELECT rowid FROM contents WHERE project = ? AND sha256 = ? AND going = 1 ORDER BY rowid", key
        )
        return [row[0] for row in rows]

    def delete_content_entry(self, entry: int) -> None:
        self.conn.execute("DELETE FROM contents WHERE rowid = ? AND going = 1", (entry,))
        self.want_scrub()  # the rows with its bytes were deleted after the commit that removed its last upload

    def _delete_unless_attached(self, upload: int) -> None:
        other = self.conn.execute("SELECT 1 FROM attachments WHERE upload = ?", (upload,)).fetchone()
        if other is None:
            self._delete_upload(upload)

    def _delete_upload(self, rowid: int) -> None:
        project, sha256, size = self.conn.execute(
            "DELETE FROM uploads WHERE rowid = ? RETURNING project, sha256, size", (rowid,)
        ).fetchone()
        if not self._referred_to(FileContent(project, sha256)):
            self._take_room(project, -size)
            self.conn.execute("INSERT INTO doomed_files (project, sha256) VALUES (?, ?)", (project, sha256))

    def _take_room(self, project: int, size: int) -> None:
        self.conn.execute(
            "INSERT INTO upload_usage VALUES (?, ?) ON CONFLICT (project) DO UPDATE SET bytes = upload_usage.bytes + excluded.bytes",
            (project, size),
        )
        # A project without uploads has no row, so that the project can be deleted.
        self.conn.execute("DELETE FROM upload_usage WHERE project = ? AND bytes = 0", (project,))
