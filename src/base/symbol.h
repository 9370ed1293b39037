/* SPDX-License-Identifier: Apache-2.0
 * Names of places in the program: function, file and line of an address.
 *
 * With libdw (elfutils), loaded at run time when the machine has it, from the debug information; else
 * from the dynamic symbols, without lines. Names of C++ are made readable when its library is in the
 * process. Debug information is looked for on this machine only, never in the network.
 *
 * No locks: each user opens its own. Slow (it reads files): call with no lock held. */
#ifndef GR_BASE_SYMBOL_H
#define GR_BASE_SYMBOL_H

#include "base/base.h"

struct gr_symbols {
    void *library, *session; /* of libdw; NULL: not to be had */
    struct {                 /* its Dwfl_Callbacks, handed on and never called here */
        void *find_elf, *find_debuginfo, *section_address;
        char **debuginfo_path;
    } callbacks;
    void *(*module_of)(void *, uint64_t);
    const char *(*name_of)(void *, uint64_t);
    void *(*line_of)(void *, uint64_t);
    void *(*unit_after)(void *, void *, uint64_t *);
    int (*unit_has)(void *, uint64_t);
    void *(*line_in)(void *, uint64_t);
    int (*line_number)(void *, int *);
    const char *(*line_file)(void *, uint64_t *, uint64_t *);
    const char *(*line_info)(void *, uint64_t *, int *, int *, uint64_t *, uint64_t *);
    void (*end)(void *);
    char *(*demangle)(const char *, char *, size_t *, int *);
};

struct gr_symbol {
    char name[512], file[512];
    int line; /* 0: not known */
};

/* The struct must stay where it is until it is closed. */
void gr_symbols_open(struct gr_symbols *symbols);
void gr_symbols_close(struct gr_symbols *symbols);

/* Of a return address: the place of the call before it. Always gives some name. */
void gr_symbols_find(const struct gr_symbols *symbols, uint64_t address, struct gr_symbol *out);

#endif
