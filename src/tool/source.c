/* SPDX-License-Identifier: Apache-2.0
 * Input files: a whole file in memory, unpacked when it is gzipped. */
#include "tool/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The tool unpacks with zlib; a machine without its headers still reads gzip through gzip(1). */
#if __has_include(<zlib.h>) && !defined(TOOL_NO_ZLIB)
#define HAVE_ZLIB 1
#include <zlib.h>
#else
#define HAVE_ZLIB 0
#include <sys/wait.h>
#endif

void problem_set(struct problem *problem, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(problem->text, sizeof problem->text, format, list);
    va_end(list);
}

enum { STEP = 1 << 16 };

struct buffer {
    char *text;
    size_t length, room, most;
};

/* Makes room for a step more and the 0 at the end. */
static int buffer_reserve(const char *path, struct buffer *b, struct problem *problem) {
    size_t room = b->room == 0 ? 2 * STEP : b->room * 2;
    char *text;
    if (b->room - b->length > STEP) return 0;
    if (b->length > b->most) {
        problem_set(problem,
                    "%s: it goes on after %zu bytes of text, which is more than this machine can take", path,
                    b->most);
        return -1;
    }
    text = realloc(b->text, room);
    if (text == NULL) {
        problem_set(problem, "%s: out of memory", path);
        return -1;
    }
    b->text = text;
    b->room = room;
    return 0;
}

#if HAVE_ZLIB

/* zlib passes plain files through unchanged. */
static int unpack(const char *path, int fd, struct buffer *b, struct problem *problem) {
    int got, code;
    gzFile file = gzdopen(fd, "rb");
    if (file == NULL) {
        close(fd);
        problem_set(problem, "%s: out of memory", path);
        return -1;
    }
    do {
        if (buffer_reserve(path, b, problem) != 0) {
            gzclose(file);
            return -1;
        }
        got = gzread(file, b->text + b->length, STEP);
        if (got > 0) b->length += (size_t)got;
    } while (got > 0);
    if (got < 0) {
        const char *words = gzerror(file, &code), *cut = strstr(words, ">: "); /* "<fd:3>: what" */
        if (cut != NULL) words = cut + 3;
        if (code == Z_ERRNO) words = strerror(errno);
        problem_set(problem, "%s: %s%s", path, code == Z_ERRNO ? "" : "damaged gzip: ", words);
        gzclose(file);
        return -1;
    }
    if (gzclose(file) == Z_BUF_ERROR) {
        problem_set(problem, "%s: truncated gzip: it ends after %zu bytes of text", path, b->length);
        return -1;
    }
    return 0;
}

#else

static int read_all(const char *path, int fd, struct buffer *b, struct problem *problem) {
    ssize_t got;
    do {
        if (buffer_reserve(path, b, problem) != 0) return -1;
        got = read(fd, b->text + b->length, STEP);
        if (got > 0) b->length += (size_t)got;
    } while (got > 0 || (got < 0 && errno == EINTR));
    if (got < 0) problem_set(problem, "%s: %s", path, strerror(errno));
    return got < 0 ? -1 : 0;
}

static int unpack(const char *path, int fd, struct buffer *b, struct problem *problem) {
    int ends[2], status, rc = -1;
    pid_t child;
    unsigned char magic[2] = {0, 0};
    ssize_t got = pread(fd, magic, 2, 0);

    /* A pipe cannot be looked into; gzip passes through what is not packed. */
    if (!(got < 0 && errno == ESPIPE) && !(got == 2 && magic[0] == 0x1f && magic[1] == 0x8b)) {
        rc = read_all(path, fd, b, problem);
        close(fd);
        return rc;
    }
    if (pipe2(ends, O_CLOEXEC) != 0 || (child = fork()) < 0) {
        problem_set(problem, "%s: cannot start gzip: %s", path, strerror(errno));
        close(fd);
        return -1;
    }
    if (child == 0) {
        dup2(fd, 0);
        dup2(ends[1], 1);
        dup2(open("/dev/null", O_WRONLY), 2);
        execlp("gzip", "gzip", "-dcf", (char *)NULL);
        _exit(127);
    }
    close(fd);
    close(ends[1]);
    rc = read_all(path, ends[0], b, problem);
    close(ends[0]);
    if (waitpid(child, &status, 0) == child && status != 0 && rc == 0) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
            problem_set(problem, "%s: there is no gzip here to unpack it", path);
        else
            problem_set(problem, "%s: truncated or damaged gzip: it ends after %zu bytes of text", path,
                        b->length);
        rc = -1;
    }
    return rc;
}

#endif

int source_read(const char *path, char **text, size_t *length, struct problem *problem) {
    const size_t machine = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    return source_read_most(path, machine / 2, text, length, problem);
}

int source_read_most(const char *path, size_t most, char **text, size_t *length, struct problem *problem) {
    struct buffer b = {.most = most};
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        problem_set(problem, "%s: %s", path, strerror(errno));
        return -1;
    }
    if (unpack(path, fd, &b, problem) != 0) {
        free(b.text);
        return -1;
    }
    b.text[b.length] = 0;
    *text = b.text;
    *length = b.length;
    return 0;
}
