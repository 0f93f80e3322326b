/*
 * Loaded before libc (LD_PRELOAD): writes down, in order, what a process asks of one directory tree and what it sends on
 * sockets and to its output; fails what it is told to fail; and shows another time of day. `shim.py` is the other side.
 *
 * A record is a head (op, inode, offset, length; 21 bytes, little-endian) and `length` bytes. One lock is held over each
 * call and its record, so that the order of the records is that of the effects.
 *
 * Every call that can send on a socket is recorded: write, writev, send, sendto, sendmsg, sendmmsg, sendfile. Writes into a
 * memory map are not (SQLite's -shm, which is not read after a loss). sendfile and copy_file_range into the tree fail with
 * ENOSYS, so that callers fall back to calls that are recorded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int64_t clock_ns;    /* added to the time of day */
    volatile int32_t write_errno; /* what writes and new names fail with; 0: they do not */
    volatile int32_t sync_errno;  /* what fsync and fdatasync fail with */
};

#define FILES 65536
#define SENT_MAX (1 << 20) /* bytes of one sendfile that are recorded */
#define WAKEUP_MAX 8         /* bytes: sockets that wake a thread carry no more */

static struct control nothing, *control = &nothing;
static char root[PATH_MAX];
static size_t root_length;
static int log_file = -1;
static unsigned char tracked[FILES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    const char *where = getenv("SHIM_ROOT"), *log = getenv("SHIM_LOG"), *knobs = getenv("SHIM_CONTROL");
    if (knobs) {
        int file = open(knobs, O_RDWR | O_CLOEXEC);
        void *map = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (map != MAP_FAILED) control = map;
        close(file);
    }
    if (where) {
        strncpy(root, where, sizeof root - 1);
        root_length = strlen(root);
    }
    if (log) {
        int file = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        log_file = fcntl(file, F_DUPFD_CLOEXEC, 800); /* out of the way of those that count descriptors */
        if (log_file < 0) log_file = file; else close(file);
    }
}

static void put(const void *data, size_t length) {
    REAL(ssize_t, write, int, const void *, size_t);
    while (length) {
        ssize_t done = real(log_file, data, length);
        if (done <= 0) abort();
        data = (const char *)data + done;
        length -= done;
    }
}

static void record_parts(char op, int64_t inode, int64_t at, const struct iovec *parts, int count, uint32_t length) {
    if (log_file < 0) return;
    char head[21];
    head[0] = op;
    memcpy(head + 1, &inode, 8);
    memcpy(head + 9, &at, 8);
    memcpy(head + 17, &length, 4);
    put(head, sizeof head);
    for (int i = 0; i < count && length; i++) {
        size_t size = parts[i].iov_len < length ? parts[i].iov_len : length;
        put(parts[i].iov_base, size);
        length -= size;
    }
}

static void record(char op, int64_t inode, int64_t at, const void *data, uint32_t length) {
    struct iovec part = {(void *)data, length};
    record_parts(op, inode, at, &part, 1, length);
}

static int within(const char *path) {
    return root_length && !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

/* The absolute path of a name that may not be there yet. */
static int absolute(int folder, const char *path, char *found) {
    char given[PATH_MAX], resolved[PATH_MAX], link[64];
    if (path[0] == '/') {
        snprintf(given, sizeof given, "%s", path);
    } else {
        ssize_t length;
        if (folder == AT_FDCWD) {
            if (!getcwd(resolved, sizeof resolved)) return 0;
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
            length = readlink(link, resolved, sizeof resolved - 1);
            if (length < 0) return 0;
            resolved[length] = 0;
        }
        if (snprintf(given, sizeof given, "%s/%s", resolved, path) >= (int)sizeof given) return 0;
    }
    char *last = strrchr(given, '/');
    if (last == given) return 0;
    *last = 0;
    if (!realpath(given, resolved)) return 0;
    return snprintf(found, PATH_MAX, "%s/%s", resolved, last + 1) < PATH_MAX;
}

static int refused(void) {
    if (!control->write_errno) return 0;
    errno = control->write_errno;
    return 1;
}

static int is_tracked(int file) { return file >= 0 && file < FILES && tracked[file]; }

static ino_t inode_of(int file) {
    struct stat status;
    return fstat(file, &status) ? 0 : status.st_ino;
}

static int opened(int (*real)(int, const char *, int, ...), int folder, const char *path, int flags, mode_t mode) {
    char full[PATH_MAX];
    struct stat status;
    if (!root_length || !absolute(folder, path, full) || !within(full)) {
        int file = real(folder, path, flags, mode);
        if (file >= 0 && file < FILES) tracked[file] = 0;
        return file;
    }
    pthread_mutex_lock(&lock);
    int there = !lstat(full, &status), file = -1;
    if (there || !(flags & O_CREAT) || !refused()) file = real(folder, path, flags, mode);
    if (file >= 0) {
        if (file < FILES) tracked[file] = 1;
        if (!there) record('C', inode_of(file), 0, full, strlen(full));
        if (there && (flags & O_TRUNC)) record('T', inode_of(file), 0, "", 0);
    }
    int saved = errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return file;
}

#define OPEN(name, at_name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, at_name, int, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        return opened(real, AT_FDCWD, path, flags, mode); \
    } \
    int at_name(int folder, const char *path, int flags, ...) { \
        REAL(int, at_name, int, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        return opened(real, folder, path, flags, mode); \
    }
OPEN(open, openat)
OPEN(open64, openat64)

int close(int file) {
    REAL(int, close, int);
    if (file >= 0 && file < FILES) tracked[file] = 0;
    return real(file);
}

static int is_socket(int file) {
    struct stat status;
    return !fstat(file, &status) && S_ISSOCK(status.st_mode);
}

static size_t size_of(const struct iovec *parts, int count) {
    size_t size = 0;
    for (int i = 0; i < count; i++) size += parts[i].iov_len;
    return size;
}

/* Recorded before it is sent: a power cut in between then counts as one after it, which asks for more. */
static void sending(const struct iovec *parts, int count) {
    size_t size = size_of(parts, count);
    if (size <= WAKEUP_MAX) return;
    pthread_mutex_lock(&lock);
    record_parts('N', 0, 0, parts, count, size);
    pthread_mutex_unlock(&lock);
}

static int64_t place_of(int file) {
    struct stat status;
    if (fcntl(file, F_GETFL) & O_APPEND) return fstat(file, &status) ? 0 : status.st_size;
    return lseek(file, 0, SEEK_CUR);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    if (!is_tracked(file)) {
        if (file == STDOUT_FILENO || is_socket(file)) sending(parts, count);
        return real(file, parts, count);
    }
    pthread_mutex_lock(&lock);
    int64_t at = place_of(file);
    ssize_t done = refused() ? -1 : real(file, parts, count);
    if (done > 0) record_parts('W', inode_of(file), at, parts, count, done);
    int saved = errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return done;
}

ssize_t write(int file, const void *data, size_t length) {
    REAL(ssize_t, write, int, const void *, size_t);
    struct iovec part = {(void *)data, length};
    if (is_tracked(file)) return writev(file, &part, 1);
    if (file == STDOUT_FILENO || is_socket(file)) sending(&part, 1);
    return real(file, data, length);
}

#define PWRITE(name, offset) \
    ssize_t name(int file, const void *data, size_t length, offset at) { \
        REAL(ssize_t, name, int, const void *, size_t, offset); \
        if (!is_tracked(file)) return real(file, data, length, at); \
        pthread_mutex_lock(&lock); \
        ssize_t done = refused() ? -1 : real(file, data, length, at); \
        if (done > 0) record('W', inode_of(file), at, data, done); \
        int saved = errno; \
        pthread_mutex_unlock(&lock); \
        errno = saved; \
        return done; \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define TRUNCATE(name, offset) \
    int name(int file, offset size) { \
        REAL(int, name, int, offset); \
        if (!is_tracked(file)) return real(file, size); \
        pthread_mutex_lock(&lock); \
        int failed = refused() ? -1 : real(file, size); \
        if (!failed) record('T', inode_of(file), size, "", 0); \
        int saved = errno; \
        pthread_mutex_unlock(&lock); \
        errno = saved; \
        return failed; \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define SYNC(name) \
    int name(int file) { \
        REAL(int, name, int); \
        if (!is_tracked(file)) return real(file); \
        pthread_mutex_lock(&lock); \
        int failed = control->sync_errno ? -1 : real(file), saved = failed && control->sync_errno ? control->sync_errno : errno; \
        if (!failed) record('S', inode_of(file), 0, "", 0); \
        pthread_mutex_unlock(&lock); \
        errno = saved; \
        return failed; \
    }
SYNC(fsync)
SYNC(fdatasync)

int mkdirat(int folder, const char *path, mode_t mode) {
    REAL(int, mkdirat, int, const char *, mode_t);
    char full[PATH_MAX];
    struct stat status;
    if (!absolute(folder, path, full) || !within(full)) return real(folder, path, mode);
    pthread_mutex_lock(&lock);
    int failed = refused() ? -1 : real(folder, path, mode), saved = errno;
    if (!failed && !stat(full, &status)) record('D', status.st_ino, 0, full, strlen(full));
    pthread_mutex_unlock(&lock);
    errno = saved;
    return failed;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    REAL(int, renameat, int, const char *, int, const char *);
    char both[2 * PATH_MAX], second[PATH_MAX];
    if (!absolute(from_folder, from, both) || !absolute(to_folder, to, second) || !within(both) || !within(second))
        return real(from_folder, from, to_folder, to);
    size_t length = strlen(both) + 1 + strlen(second);
    strcpy(both + strlen(both) + 1, second);
    pthread_mutex_lock(&lock);
    int failed = refused() ? -1 : real(from_folder, from, to_folder, to), saved = errno;
    if (!failed) record('R', 0, 0, both, length);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return failed;
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int unlinkat(int folder, const char *path, int flags) {
    REAL(int, unlinkat, int, const char *, int);
    char full[PATH_MAX];
    if (!absolute(folder, path, full) || !within(full)) return real(folder, path, flags);
    pthread_mutex_lock(&lock);
    int failed = real(folder, path, flags), saved = errno;
    if (!failed) record('U', 0, 0, full, strlen(full));
    pthread_mutex_unlock(&lock);
    errno = saved;
    return failed;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

ssize_t sendto(int socket, const void *data, size_t length, int flags, const struct sockaddr *to, socklen_t size) {
    REAL(ssize_t, sendto, int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    struct iovec part = {(void *)data, length};
    sending(&part, 1);
    return real(socket, data, length, flags, to, size);
}

ssize_t send(int socket, const void *data, size_t length, int flags) {
    return sendto(socket, data, length, flags, NULL, 0);
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    REAL(ssize_t, sendmsg, int, const struct msghdr *, int);
    sending(message->msg_iov, message->msg_iovlen);
    return real(socket, message, flags);
}

int sendmmsg(int socket, struct mmsghdr *messages, unsigned int count, int flags) {
    REAL(int, sendmmsg, int, struct mmsghdr *, unsigned int, int);
    for (unsigned int i = 0; i < count; i++) sending(messages[i].msg_hdr.msg_iov, messages[i].msg_hdr.msg_iovlen);
    return real(socket, messages, count, flags);
}

#define SENDFILE(name, offset) \
    ssize_t name(int to, int from, offset *at, size_t length) { \
        REAL(ssize_t, name, int, int, offset *, size_t); \
        if (is_tracked(to)) { \
            errno = ENOSYS; \
            return -1; \
        } \
        if (is_socket(to)) { \
            struct iovec part = {malloc(SENT_MAX), 0}; \
            ssize_t found = part.iov_base ? pread(from, part.iov_base, length < SENT_MAX ? length : SENT_MAX, \
                                                  at ? *at : lseek(from, 0, SEEK_CUR)) : -1; \
            if (found > 0) { \
                part.iov_len = found; \
                sending(&part, 1); \
            } \
            free(part.iov_base); \
        } \
        return real(to, from, at, length); \
    }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned int flags) {
    REAL(ssize_t, copy_file_range, int, off64_t *, int, off64_t *, size_t, unsigned int);
    if (!is_tracked(to)) return real(from, from_at, to, to_at, length, flags);
    errno = ENOSYS;
    return -1;
}

int clock_gettime(clockid_t clock, struct timespec *found) {
    REAL(int, clock_gettime, clockid_t, struct timespec *);
    int failed = real(clock, found);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) && control->clock_ns) {
        int64_t now = found->tv_sec * 1000000000LL + found->tv_nsec + control->clock_ns;
        found->tv_sec = now / 1000000000LL;
        found->tv_nsec = now % 1000000000LL;
    }
    return failed;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found) *found = now.tv_sec;
    return now.tv_sec;
}
