/* SPDX-License-Identifier: Apache-2.0
 * Snapshots in files. */
#include "report/save.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/text.h"

/* Opens a file beside path that nobody else has: threads, processes, and machines that share the folder may
 * be writing the same one. Its name goes to part. */
static int open_part(const char *path, char *part, size_t room) {
    enum { TRIES = 16 };
    int fd = -1;
    for (int i = 0; i < TRIES && fd < 0; i++) {
        int length =
            snprintf(part, room, "%s.%d.%llx.part", path, (int)getpid(), (unsigned long long)gr_clock_ns());
        if (length < 0 || (size_t)length >= room) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return -1;
    }
    return fd;
}

int gr_save_snapshot(granary *g, enum granary_format format, const struct granary_fault *fault,
                     const char *path) {
    char part[PATH_MAX];
    int fd = open_part(path, part, sizeof(part));
    if (fd < 0) return GRANARY_WRITE;
    int status = gr_snapshot_write(g, format, fault, gr_sink_to_fd, &fd);
    if (close(fd) != 0 && status == GRANARY_OK) status = GRANARY_WRITE;
    if (status == GRANARY_OK && rename(part, path) != 0) status = GRANARY_WRITE;
    if (status != GRANARY_OK) {
        int why = errno;
        (void)unlink(part);
        errno = why;
    }
    return status;
}

bool gr_save_prepare(granary *g, const char *option) {
    const char *path = option ? option : getenv("GRANARY_OOM_SNAPSHOT");
    g->settings.oom_snapshot = NULL;
    if (!path || !path[0]) return true;
    size_t size = strlen(path) + 1;
    g->oom_snapshot = gr_host_take(size, 1, sizeof(void *));
    if (g->oom_snapshot) memcpy(g->oom_snapshot, path, size);
    g->settings.oom_snapshot = g->oom_snapshot; /* not the caller's, which may go */
    return g->oom_snapshot != NULL;
}

/* Puts process, device and number into a name; whether it has a %n. */
static bool expand(const char *from, int device, uint64_t number, char *path, size_t room) {
    bool numbered = false;
    path[0] = '\0';
    for (; *from; from++) {
        if (from[0] != '%' || !from[1]) {
            gr_text_add(path, room, "%c", *from);
            continue;
        }
        switch (*++from) {
        case 'p': gr_text_add(path, room, "%d", (int)getpid()); break;
        case 'd': gr_text_add(path, room, "%d", device); break;
        case 'n':
            gr_text_add(path, room, "%llu", (unsigned long long)number);
            numbered = true;
            break;
        default: gr_text_add(path, room, "%c", *from); break;
        }
    }
    return numbered;
}

/* What became of the snapshot. A name that is too long for the fault loses its front. */
static void say_where(struct granary_fault *fault, const char *path, int status, const char *why) {
    enum { WORDS = 96 };
    const size_t length = strlen(path), room = sizeof(fault->snapshot) - WORDS;
    const char *dots = length > room ? "..." : "";
    if (length > room) path += length - room;
    if (status == GRANARY_OK)
        gr_text_put(fault->snapshot, sizeof(fault->snapshot), "A snapshot is in %s%s", dots, path);
    else
        gr_text_put(fault->snapshot, sizeof(fault->snapshot), "No snapshot is in %s%s: %s", dots, path, why);
}

void gr_save_out_of_memory(granary *g, struct granary_fault *fault) {
    char path[PATH_MAX];
    if (!g->oom_snapshot) return;
    uint64_t number = atomic_fetch_add_explicit(&g->failures, 1, memory_order_relaxed) + 1;
    if (!expand(g->oom_snapshot, g->driver.facts.device, number, path, sizeof(path)) && number > 1) return;
    const char *ending = strrchr(path, '.');
    bool json = ending && strcmp(ending, ".json") == 0;
    int status = gr_save_snapshot(g, json ? GRANARY_JSON : GRANARY_PICKLE, fault, path);
    char why[48];
    say_where(fault, path, status,
              status == GRANARY_WRITE ? strerror_r(errno, why, sizeof(why))
                                      : granary_status_sentence(status));
}
