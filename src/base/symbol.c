/* SPDX-License-Identifier: Apache-2.0
 * Names of places in the program. */
#include "base/symbol.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static bool look_up(void *library, void *function, const char *name) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof(found));
    return found != NULL;
}

static int no_debuginfo(void) {
    return -1;
}

/* Lists the modules of this process; their files are opened when an address of theirs is asked for. */
static void begin(struct gr_symbols *s) {
    void *(*begin)(const void *callbacks);
    int (*report)(void *, pid_t), (*report_end)(void *, void *, void *);
    int (*nothing)(void) = no_debuginfo;
    /* Stays once it is there: what it keeps for each thread must not outlive its code. */
    void *lib = s->library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!(lib && look_up(lib, &begin, "dwfl_begin") && look_up(lib, &report, "dwfl_linux_proc_report") &&
          look_up(lib, &report_end, "dwfl_report_end") && look_up(lib, &s->end, "dwfl_end") &&
          look_up(lib, &s->module_of, "dwfl_addrmodule") &&
          look_up(lib, &s->name_of, "dwfl_module_addrname") &&
          look_up(lib, &s->line_of, "dwfl_module_getsrc") && look_up(lib, &s->line_info, "dwfl_lineinfo") &&
          look_up(lib, &s->unit_after, "dwfl_module_nextcu") && look_up(lib, &s->unit_has, "dwarf_haspc") &&
          look_up(lib, &s->line_in, "dwarf_getsrc_die") && look_up(lib, &s->line_number, "dwarf_lineno") &&
          look_up(lib, &s->line_file, "dwarf_linesrc") &&
          look_up(lib, &s->callbacks.find_elf, "dwfl_linux_proc_find_elf") &&
          look_up(lib, &s->callbacks.find_debuginfo, "dwfl_standard_find_debuginfo")))
        return;
    /* The standard search would go on in the network. */
    if (getenv("DEBUGINFOD_URLS")) memcpy(&s->callbacks.find_debuginfo, &nothing, sizeof(nothing));
    s->session = begin(&s->callbacks);
    if (!s->session) return;
    if (report(s->session, getpid()) == 0 && report_end(s->session, NULL, NULL) == 0) return;
    s->end(s->session);
    s->session = NULL;
}

void gr_symbols_open(struct gr_symbols *s) {
    memset(s, 0, sizeof(*s));
    begin(s);
    look_up(RTLD_DEFAULT, &s->demangle, "__cxa_demangle");
}

void gr_symbols_close(struct gr_symbols *s) {
    if (s->session) s->end(s->session);
    if (s->library) dlclose(s->library);
}

static void name_it(const struct gr_symbols *s, const char *name, struct gr_symbol *out) {
    char *readable = NULL;
    int status = 0;
    if (s->demangle && name[0] == '_' && name[1] == 'Z') readable = s->demangle(name, NULL, NULL, &status);
    gr_text_put(out->name, sizeof(out->name), "%s", readable ? readable : name);
    free(readable); /* the C++ library's own malloc */
}

/* Its line, and its file as it is returned, or NULL. clang writes no table of the addresses that a unit has
 * (.debug_aranges), without which libdw before 0.191 looks into none: then each unit is asked. */
static const char *find_line(const struct gr_symbols *s, void *module, uint64_t place, int *out) {
    void *line = s->line_of(module, place), *unit = NULL;
    uint64_t bias = 0;
    if (line) return s->line_info(line, NULL, out, NULL, NULL, NULL);
    do unit = s->unit_after(module, unit, &bias);
    while (unit && s->unit_has(unit, place - bias) <= 0);
    if (unit) line = s->line_in(unit, place - bias);
    return line && s->line_number(line, out) == 0 ? s->line_file(line, NULL, NULL) : NULL;
}

void gr_symbols_find(const struct gr_symbols *s, uint64_t address, struct gr_symbol *out) {
    uint64_t place = address - 1;
    Dl_info info = {0};
    const char *name = NULL;
    out->file[0] = out->name[0] = '\0';
    out->line = 0;
    void *module = s->session ? s->module_of(s->session, place) : NULL;
    if (module) {
        name = s->name_of(module, place);
        const char *file = find_line(s, module, place, &out->line);
        if (file) gr_text_put(out->file, sizeof(out->file), "%s", file);
    }
    bool found = dladdr((void *)(uintptr_t)place, &info) != 0;
    if (!out->file[0])
        gr_text_put(out->file, sizeof(out->file), "%s", found && info.dli_fname ? info.dli_fname : "??");
    if (!name && found) name = info.dli_sname;
    if (name)
        name_it(s, name, out);
    else if (found)
        gr_text_put(out->name, sizeof(out->name), "+0x%llx",
                    (unsigned long long)(place - (uint64_t)(uintptr_t)info.dli_fbase));
    else
        gr_text_put(out->name, sizeof(out->name), "0x%llx", (unsigned long long)address);
}
