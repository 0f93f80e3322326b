/*
 * Loaded before libc (LD_PRELOAD): writes down, in order, what a process asks of one directory tree and what it sends on
 * sockets and to its output; fails what it is told to fail; and shows another time of day. `shim.py` is the other side.
 *
 * A record is a head (op, inode, offset, length; 21 bytes, little-endian) and `length` bytes. One lock is held over each
 * call and its record, so that the order of the records is that of the effects.
 *
 * Not seen: what is written through a memory map (SQLite's -shm, which is made anew after a loss), O_APPEND by several,
 * writev, sendfile, copy_file_range: nothing here uses them.
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int64_t clock_ns;    /* added to the time of day */
    volatile int32_t write_errno; /* what writes and new names fail with; 0: they do not */
    volatile int32_t sync_errno;  /* what fsync and fdatasync fail with */
};

#define FILES 65536
#define SENT_MAX (1 << 20)

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

static void record(char op, int64_t inode, int64_t at, const void *data, uint32_t length) {
    if (log_file < 0) return;
    char head[21];
    head[0] = op;
    memcpy(head + 1, &inode, 8);
    memcpy(head + 9, &at, 8);
    memcpy(head + 17, &length, 4);
    put(head, sizeof head);
    put(data, length);
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

static int64_t place_of(int file) {
    struct stat status;
    if (fcntl(file, F_GETFL) & O_APPEND) return fstat(file, &status) ? 0 : status.st_size;
    return lseek(file, 0, SEEK_CUR);
}

ssize_t write(int file, const void *data, size_t length) {
    REAL(ssize_t, write, int, const void *, size_t);
    if (file == 1) {
        pthread_mutex_lock(&lock);
        record('N', 0, 0, data, length);
        pthread_mutex_unlock(&lock);
    }
    if (!is_tracked(file)) return real(file, data, length);
    pthread_mutex_lock(&lock);
    int64_t at = place_of(file);
    ssize_t done = refused() ? -1 : real(file, data, length);
    if (done > 0) record('W', inode_of(file), at, data, done);
    int saved = errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return done;
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

ssize_t send(int socket, const void *data, size_t length, int flags) {
    REAL(ssize_t, send, int, const void *, size_t, int);
    if (length > 8) {
        pthread_mutex_lock(&lock);
        record('N', 0, 0, data, length < SENT_MAX ? length : SENT_MAX);
        pthread_mutex_unlock(&lock);
    }
    return real(socket, data, length, flags);
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
