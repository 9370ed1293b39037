/* SPDX-License-Identifier: Apache-2.0
 * Running out of memory on purpose, on a simulated card of 8 GiB: one scene for each kind of shortage
 * (and more than one where the advice differs). Needs no test framework, so that a small program can
 * show them (test/doc/shortage.c). */
#ifndef SUPPORT_SHORTAGE_H
#define SUPPORT_SHORTAGE_H

#include <granary/sim.h>

struct shortage_scene {
    const char *name;
    enum granary_shortage kind;
    const char *conf;     /* option string */
    const char *help;     /* the setting that the advice names and that helps; NULL: no setting does */
    size_t address_bytes; /* of the process; 0: plenty */
    /* Returns the request that fails, on *stream. */
    size_t (*prepare)(granary *g, granary_stream a, granary_stream b, granary_stream *stream);
};

/* Ends with a name of NULL. */
extern const struct shortage_scene shortage_scenes[];

/* Plays it, with more options (or NULL). 0 with the facts, or with a struct_size of 0 when the request was
 * served; else the line where something went otherwise. */
int shortage_play(const struct shortage_scene *scene, const char *more, struct granary_shortfall *out);

#endif
