/* SPDX-License-Identifier: Apache-2.0
 * Finds libcuda at run time and fills the table, each entry in the exact version that its
 * declaration describes.
 *
 * Q: why not dlsym each symbol? A: a plain name is bound to an old ABI, a suffixed one (_v2) means
 * different versions for different calls; cuGetProcAddress alone is told which ABI the caller has. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <granary/granary.h>

#include "base/text.h"
#include "driver/driver.h"

/* cuGetProcAddress as of 12.0 and as of 11.3. */
typedef gr_cu_result (*find_fn)(const char *symbol, void **out, int version, uint64_t flags, int *why);
typedef gr_cu_result (*old_find_fn)(const char *symbol, void **out, int version, uint64_t flags);
typedef gr_cu_result (*version_fn)(int *out);
typedef void (*any_fn)(void);

enum { LEGACY_STREAM = 1 }; /* NULL is the legacy default stream, whatever the program was built for */

struct finder {
    find_fn find;
    old_find_fn old_find;
};

enum need { OPTIONAL, TEST, REQUIRED };

/* An object pointer of dlsym as a function. */
static any_fn as_function(void *object) {
    any_fn function;
    _Static_assert(sizeof function == sizeof object, "POSIX: dlsym finds functions");
    memcpy(&function, &object, sizeof function);
    return function;
}

/* NULL when there is none of that version. A code of SUCCESS alone does not promise a function. */
static any_fn find(const struct finder *f, const char *symbol, int version, gr_cu_result *code) {
    void *object = NULL;
    int why = 0;
    *code = f->find != NULL ? f->find(symbol, &object, version, LEGACY_STREAM, &why)
                            : f->old_find(symbol, &object, version, LEGACY_STREAM);
    return *code == GR_CU_SUCCESS ? as_function(object) : NULL;
}

/* Says which driver it is that has no cuGetProcAddress. */
static int too_old(void *library, const char *name, char *reason) {
    version_fn get = (version_fn)as_function(dlsym(library, "cuDriverGetVersion"));
    int version = 0;
    if (get != NULL && get(&version) == GR_CU_SUCCESS && version > 0)
        gr_text_put(reason, GR_REASON_ROOM, "%s is the driver of CUDA %d.%d; 11.3 or newer is needed", name,
                    version / 1000, version % 1000 / 10);
    else
        gr_text_put(reason, GR_REASON_ROOM,
                    "%s has no cuGetProcAddress; a driver of CUDA 11.3 or newer is needed", name);
    return GRANARY_OLD_DRIVER;
}

int gr_load_table(struct gr_table *table, void **library, char *reason) {
    const char *name = secure_getenv("GRANARY_LIBCUDA");
    if (name == NULL || name[0] == '\0') name = "libcuda.so.1";
    void *opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (opened == NULL) {
        const char *words = dlerror();
        gr_text_put(reason, GR_REASON_ROOM, "cannot load the CUDA driver: %s", words != NULL ? words : name);
        return GRANARY_NO_DRIVER;
    }

    struct finder f = {
        .find = (find_fn)as_function(dlsym(opened, "cuGetProcAddress_v2")),
        .old_find = (old_find_fn)as_function(dlsym(opened, "cuGetProcAddress")),
    };
    if (f.find == NULL && f.old_find == NULL) return too_old(opened, name, reason);

#define GR_ENTRY(symbol, version, need, kind, parameters)                                              \
    do {                                                                                               \
        gr_cu_result code;                                                                             \
        table->symbol = (gr_cu_result(*) parameters)find(&f, #symbol, version, &code);                 \
        if (code == GR_CU_STUB_LIBRARY) goto stub;                                                     \
        if (table->symbol == NULL && need == REQUIRED) {                                               \
            gr_text_put(reason, GR_REASON_ROOM, "%s has no %s of version %d", name, #symbol, version); \
            return GRANARY_OLD_DRIVER;                                                                 \
        }                                                                                              \
    } while (0);
#include "driver/entries.def"
#undef GR_ENTRY
    *library = opened;
    return GRANARY_OK;

stub:
    gr_text_put(reason, GR_REASON_ROOM,
                "%s is the stub of the CUDA toolkit that programs are linked with, not a driver", name);
    return GRANARY_STUB_DRIVER;
}
