/* Sees every system call of this process that changes files below one folder, or opens one, and can make one of them fail.

   A seccomp filter traps the calls below: those of libc's own streams and of statically linked libraries too, which a preloaded library
   does not see. The handler runs in the thread that called, on its stack. It writes a record of each call to a log, and lets the call
   happen, fail, happen by half, or kills the process there. The one instruction from which calls pass the filter is in `raw` below.
   What must not live here: what a record means, which calls shall fail (system_calls.py). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

long raw(long number, long a, long b, long c, long d, long e, long f) __attribute__((visibility("hidden")));
extern char raw_passed[] __attribute__((visibility("hidden")));

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
__asm__(".text\n.hidden raw\n.globl raw\n.type raw,@function\nraw:\n"
        "mov %rdi,%rax\nmov %rsi,%rdi\nmov %rdx,%rsi\nmov %rcx,%rdx\nmov %r8,%r10\nmov %r9,%r8\nmov 8(%rsp),%r9\nsyscall\n"
        ".hidden raw_passed\n.globl raw_passed\nraw_passed:\nret\n");
#define ARGUMENT(u, n) ((long)(u)->uc_mcontext.gregs[((const int[]){REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9})[n]])
#define RESULT(u) ((u)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
__asm__(".text\n.hidden raw\n.globl raw\n.type raw,%function\nraw:\n"
        "mov x8,x0\nmov x0,x1\nmov x1,x2\nmov x2,x3\nmov x3,x4\nmov x4,x5\nmov x5,x6\nsvc #0\n"
        ".hidden raw_passed\n.globl raw_passed\nraw_passed:\nret\n");
#define ARGUMENT(u, n) ((long)(u)->uc_mcontext.regs[n])
#define RESULT(u) ((u)->uc_mcontext.regs[0])
#else
#error "system_calls.c knows x86_64 and aarch64"
#endif

/* Numbers are part of the log's format: system_calls.py has the same. */
enum { MARK, READ_OPEN, WRITE_OPEN, CREATE, WRITE, SYNC, RENAME, LINK, SYMLINK, UNLINK, RMDIR, MKDIR, TRUNCATE, MODE, ALLOCATE };
enum { PASS, FAIL, KILL, SHORT, TORN };

struct record {
    uint32_t size, operation;
    int64_t number, offset, length, result;
    uint32_t was_there, injected, path_bytes, other_bytes, data_bytes, thread;
};

static struct {
    char root[PATH_MAX];
    size_t root_bytes;
    int log, with_data, skips_sync;
    int64_t at;
    int action, error;
    uint32_t from_then_on; /* bit set of operations that fail after `at` as well */
    int64_t count;
    int is_armed;
} now = {.log = -1};

static volatile int lock;

struct call {
    long number, arguments[6];
    int operation, fd, path_at, other_at; /* places of arguments; -1: none */
    int path_folder, other_folder;        /* the folder's descriptor that goes with each */
};

static int open_kind(long flags) { return flags & O_CREAT ? CREATE : (flags & O_ACCMODE) == O_RDONLY ? READ_OPEN : WRITE_OPEN; }

/* Whether the call is one that counts; fills in where its paths and descriptors stand. */
static int classify(struct call *c) {
    long *a = c->arguments;
    c->fd = c->path_at = c->other_at = -1;
    c->path_folder = c->other_folder = AT_FDCWD;
#define BY_PATH(o, p) (c->operation = (o), c->path_at = (p), 1)
#define BY_FOLDER(o, p) (c->operation = (o), c->path_at = (p), c->path_folder = (int)a[(p) - 1], 1)
#define BY_FD(o, f) (c->operation = (o), c->fd = (int)a[f], 1)
    switch (c->number) {
#ifdef SYS_open
    case SYS_open: return BY_PATH(open_kind(a[1]), 0);
    case SYS_creat: return BY_PATH(CREATE, 0);
    case SYS_rename: c->other_at = 1; return BY_PATH(RENAME, 0);
    case SYS_link: c->other_at = 1; return BY_PATH(LINK, 0);
    case SYS_symlink: c->other_at = 0; return BY_PATH(SYMLINK, 1);
    case SYS_unlink: return BY_PATH(UNLINK, 0);
    case SYS_rmdir: return BY_PATH(RMDIR, 0);
    case SYS_mkdir: return BY_PATH(MKDIR, 0);
    case SYS_chmod: return BY_PATH(MODE, 0);
#endif
    case SYS_openat: return BY_FOLDER(open_kind(a[2]), 1);
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2: c->other_at = 3; c->other_folder = (int)a[2]; return BY_FOLDER(RENAME, 1);
    case SYS_linkat: c->other_at = 3; c->other_folder = (int)a[2]; return BY_FOLDER(LINK, 1);
    case SYS_symlinkat: c->other_at = 0; return BY_FOLDER(SYMLINK, 2);
    case SYS_unlinkat: return BY_FOLDER(a[2] & AT_REMOVEDIR ? RMDIR : UNLINK, 1);
    case SYS_mkdirat: return BY_FOLDER(MKDIR, 1);
    case SYS_fchmodat: return BY_FOLDER(MODE, 1);
    case SYS_truncate: return BY_PATH(TRUNCATE, 0);
    case SYS_ftruncate: return BY_FD(TRUNCATE, 0);
    case SYS_fallocate: return BY_FD(ALLOCATE, 0);
    case SYS_fchmod: return BY_FD(MODE, 0);
    case SYS_write: case SYS_pwrite64: case SYS_writev: case SYS_pwritev: case SYS_pwritev2: return BY_FD(WRITE, 0);
    case SYS_sendfile: return BY_FD(WRITE, 0);
    case SYS_copy_file_range: return BY_FD(WRITE, 2);
    case SYS_fsync: case SYS_fdatasync: return BY_FD(SYNC, 0);
    }
    return 0;
}

static const int trapped[] = {
#ifdef SYS_open
    SYS_open, SYS_creat, SYS_rename, SYS_link, SYS_symlink, SYS_unlink, SYS_rmdir, SYS_mkdir, SYS_chmod,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
    SYS_openat, SYS_renameat2, SYS_linkat, SYS_symlinkat, SYS_unlinkat, SYS_mkdirat, SYS_fchmodat, SYS_truncate, SYS_ftruncate,
    SYS_fallocate, SYS_fchmod, SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_pwritev2, SYS_sendfile, SYS_copy_file_range,
    SYS_fsync, SYS_fdatasync};

static size_t descriptor_path(int fd, char *path) {
    char name[32] = "/proc/self/fd/";
    char digits[12];
    int count = 0, at = 14;
    if (fd < 0) return 0;
    do digits[count++] = (char)('0' + fd % 10); while (fd /= 10);
    while (count) name[at++] = digits[--count];
    name[at] = 0;
    long bytes = raw(SYS_readlinkat, AT_FDCWD, (long)name, (long)path, PATH_MAX - 1, 0, 0);
    if (bytes < 0) bytes = 0;
    path[bytes] = 0;
    return (size_t)bytes;
}

static size_t absolute_path(int folder, const char *given, char *path) {
    size_t bytes = 0;
    if (given[0] != '/') {
        if (folder == AT_FDCWD) {
            long length = raw(SYS_getcwd, (long)path, PATH_MAX, 0, 0, 0, 0);
            bytes = length > 0 ? (size_t)length - 1 : 0;
        } else {
            bytes = descriptor_path(folder, path);
        }
        path[bytes++] = '/';
    }
    size_t rest = strnlen(given, PATH_MAX - 1 - bytes);
    memcpy(path + bytes, given, rest);
    bytes += rest;
    while (bytes > 1 && path[bytes - 1] == '/') bytes--;
    path[bytes] = 0;
    return bytes;
}

static int is_watched(const char *path, size_t bytes) {
    return bytes >= now.root_bytes && !memcmp(path, now.root, now.root_bytes) && (path[now.root_bytes] == '/' || !path[now.root_bytes]);
}

static long open_flags(struct call *c) {
#ifdef SYS_open
    if (c->number == SYS_creat) return O_CREAT | O_TRUNC;
    if (c->number == SYS_open) return c->arguments[1];
#endif
    return c->arguments[2];
}

static int64_t position(int fd) {
    long flags = raw(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
    return raw(SYS_lseek, fd, 0, flags >= 0 && flags & O_APPEND ? SEEK_END : SEEK_CUR, 0, 0, 0);
}

static size_t vector_bytes(const struct iovec *vector, long count) {
    size_t bytes = 0;
    for (long n = 0; n < count; n++) bytes += vector[n].iov_len;
    return bytes;
}

static int64_t write_offset(struct call *c) {
    long *a = c->arguments;
    if (c->number == SYS_pwrite64 || c->number == SYS_pwritev || c->number == SYS_pwritev2) return a[3];
    if (c->number == SYS_copy_file_range && a[3]) return *(int64_t *)a[3];
    return position(c->fd);
}

static int64_t write_length(struct call *c) {
    long *a = c->arguments;
    switch (c->number) {
    case SYS_writev: case SYS_pwritev: case SYS_pwritev2: return (int64_t)vector_bytes((void *)a[1], a[2]);
    case SYS_sendfile: return a[3];
    case SYS_copy_file_range: return a[4];
    default: return a[2];
    }
}

/* The same write with half its bytes, of a vector the first half of its first piece that has any. */
static long write_half(struct call *c) {
    long a[6];
    memcpy(a, c->arguments, sizeof a);
    switch (c->number) {
    case SYS_writev: case SYS_pwritev: case SYS_pwritev2: {
        struct iovec *vector = (void *)a[1], first;
        long n = 0;
        while (n < a[2] - 1 && vector[n].iov_len < 2) n++;
        first.iov_base = vector[n].iov_base;
        first.iov_len = vector[n].iov_len / 2;
        if (n) return -EIO; /* never seen: a vector that begins with an empty piece */
        a[1] = (long)&first, a[2] = 1;
        return raw(c->number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    case SYS_sendfile: a[3] /= 2; break;
    case SYS_copy_file_range: a[4] /= 2; break;
    default: a[2] /= 2;
    }
    return raw(c->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void put(const void *bytes, size_t count) {
    const char *from = bytes;
    while (count) {
        long written = raw(SYS_write, now.log, (long)from, (long)count, 0, 0, 0);
        if (written <= 0) return;
        from += written, count -= (size_t)written;
    }
}

/* The bytes that a write put into the file, read back: the caller's memory may hold them in pieces or not at all. */
static void put_data(int fd, int64_t offset, int64_t count) {
    char name[PATH_MAX], block[16384];
    if (!descriptor_path(fd, name)) return;
    char link[32] = "/proc/self/fd/", digits[12];
    int n = 0, at = 14, rest = fd;
    do digits[n++] = (char)('0' + rest % 10); while (rest /= 10);
    while (n) link[at++] = digits[--n];
    link[at] = 0;
    long file = raw(SYS_openat, AT_FDCWD, (long)link, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    while (count > 0) {
        long got = file < 0 ? -1 : raw(SYS_pread64, file, (long)block, count < (long)sizeof block ? count : (long)sizeof block, offset, 0, 0);
        if (got <= 0) { memset(block, 0, sizeof block); got = count < (long)sizeof block ? count : (long)sizeof block; }
        put(block, (size_t)got);
        offset += got, count -= got;
    }
    if (file >= 0) raw(SYS_close, file, 0, 0, 0, 0, 0);
}

static void die(void) {
    raw(SYS_kill, raw(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0, 0);
    for (;;) raw(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static long perform(struct call *c) {
    long *a = c->arguments;
    if (c->operation == SYNC && now.skips_sync) return 0;
    return raw(c->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static long counted(struct call *c, const char *path, size_t path_bytes, const char *other, size_t other_bytes) {
    struct record r = {.operation = (uint32_t)c->operation, .path_bytes = (uint32_t)path_bytes, .other_bytes = (uint32_t)other_bytes};
    long *a = c->arguments;
    r.number = ++now.count;
    r.thread = (uint32_t)raw(SYS_gettid, 0, 0, 0, 0, 0, 0);
    if (c->operation == WRITE) r.offset = write_offset(c), r.length = write_length(c);
    if (c->operation == TRUNCATE) r.length = a[1];
    if (c->operation == ALLOCATE) r.offset = a[2], r.length = a[3];
    if (c->operation == CREATE || c->operation == WRITE_OPEN) r.offset = open_flags(c);
    struct stat there;
    r.was_there = raw(SYS_newfstatat, AT_FDCWD, (long)(c->operation == LINK || c->operation == RENAME ? other : path), (long)&there,
                      AT_SYMLINK_NOFOLLOW, 0, 0) == 0;
    int action = r.number == now.at ? now.action : PASS;
    if (now.at && r.number > now.at && now.from_then_on >> c->operation & 1) action = FAIL;
    r.injected = (uint32_t)action;
    switch (action) {
    case FAIL: r.result = -now.error; break;
    case SHORT: r.result = write_half(c); break;
    case TORN: r.result = write_half(c); break;
    case KILL: r.result = 0; break;
    default: r.result = perform(c);
    }
    if (now.with_data && c->operation == WRITE && r.result > 0) r.data_bytes = (uint32_t)r.result;
    r.size = (uint32_t)(sizeof r + path_bytes + other_bytes + r.data_bytes);
    if (now.log >= 0) {
        put(&r, sizeof r);
        put(path, path_bytes);
        put(other, other_bytes);
        if (r.data_bytes) put_data(c->fd, r.offset, r.result);
    }
    if (action == KILL || action == TORN) die();
    return r.result;
}

static long answer(struct call *c) {
    char path[PATH_MAX], other[PATH_MAX];
    size_t path_bytes = 0, other_bytes = 0;
    long *a = c->arguments;
    if (now.is_armed && classify(c)) {
        path_bytes = c->fd >= 0 ? descriptor_path(c->fd, path) : c->path_at < 0 ? 0 : absolute_path(c->path_folder, (char *)a[c->path_at], path);
        if (c->other_at >= 0) {
            if (c->operation == SYMLINK) {
                other_bytes = strnlen((char *)a[c->other_at], PATH_MAX - 1);
                memcpy(other, (char *)a[c->other_at], other_bytes);
                other[other_bytes] = 0;
            } else {
                other_bytes = absolute_path(c->other_folder, (char *)a[c->other_at], other);
            }
        }
        int is_ours = is_watched(path, path_bytes) || (c->operation != SYMLINK && other_bytes && is_watched(other, other_bytes));
        if (is_ours) {
            while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) raw(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
            long result = now.is_armed ? counted(c, path, path_bytes, other, other_bytes) : perform(c);
            __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
            return result;
        }
    }
    return raw(c->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void on_trap(int signal, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    struct call c = {.number = info->si_syscall};
    (void)signal;
    for (int n = 0; n < 6; n++) c.arguments[n] = ARGUMENT(u, n);
    RESULT(u) = answer(&c);
}

/* Begin to trap, in all threads, for the rest of the process's life. 0, or the errno of what is not allowed here. */
int watch(void) {
    struct sock_filter filter[8 + 2 * sizeof trapped / sizeof *trapped];
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART};
    uint64_t passed = (uint64_t)raw_passed;
    int n = 0, calls = sizeof trapped / sizeof *trapped;
#define STATEMENT(...) filter[n++] = (struct sock_filter)BPF_STMT(__VA_ARGS__)
#define JUMP(...) filter[n++] = (struct sock_filter)BPF_JUMP(__VA_ARGS__)
    sigfillset(&action.sa_mask);
    if (sigaction(SIGSYS, &action, NULL)) return errno;
    STATEMENT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0);
    STATEMENT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    STATEMENT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer));
    JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)passed, 0, 1); /* the lower half tells it from all others but one in 4 billion */
    STATEMENT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    STATEMENT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < calls; i++) {
        JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)trapped[i], 0, 1);
        STATEMENT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    }
    STATEMENT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return errno;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ? errno : 0;
}

/* Count calls below `root` from 1, log them to `log` (-1: do not), and do `action` to number `at`; `error` is for FAIL. */
void arm(const char *root, int log, int with_data, int skips_sync, long at, int action, int error, unsigned from_then_on) {
    now.root_bytes = strnlen(root, PATH_MAX - 1);
    memcpy(now.root, root, now.root_bytes + 1);
    now.log = log, now.with_data = with_data, now.skips_sync = skips_sync;
    now.at = at, now.action = action, now.error = error, now.from_then_on = from_then_on, now.count = 0;
    now.is_armed = 1;
}

void disarm(void) { now.is_armed = 0; }

long count(void) { return now.count; }

/* Write a line of the caller's own into the log, in its place among the calls. */
void mark(const char *text) {
    struct record r = {.operation = MARK, .path_bytes = (uint32_t)strlen(text)};
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) raw(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    r.size = (uint32_t)(sizeof r + r.path_bytes);
    if (now.log >= 0) put(&r, sizeof r), put(text, r.path_bytes);
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}
