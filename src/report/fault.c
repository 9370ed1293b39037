/* SPDX-License-Identifier: Apache-2.0
 * Failures of public functions. */
#include "report/fault.h"

#include <string.h>

#include "base/text.h"

void gr_fault_begin(struct granary_fault *fault, const char *call, int status) {
    *fault = (struct granary_fault){.struct_size = sizeof(*fault), .status = status};
    gr_text_put(fault->call, sizeof(fault->call), "%s", call);
}

/* A refusal of the driver: entry point and code go into the fault. */
static void add_refusal(struct granary_fault *fault, struct gr_driver *driver) {
    char code_name[GR_CODE_NAME_ROOM];
    gr_cu_result code;
    int entry = gr_driver_last(driver, &code);
    if (entry < 0) return;
    fault->driver_code = code;
    gr_text_put(fault->driver_call, sizeof(fault->driver_call), "%s", gr_driver_entry_name(entry));
    if (!fault->text[0])
        gr_text_put(fault->text, sizeof(fault->text), "%s answered %s (%d)", fault->driver_call,
                    gr_driver_code_name(driver, code, code_name), code);
}

int gr_fault_keep(granary *g, struct granary_fault *fault) {
    switch (fault->status) {
    case GRANARY_DRIVER:
    case GRANARY_LOST: add_refusal(fault, &g->driver); break;
    case GRANARY_UNSUPPORTED: /* of ours, when there are words already */
        if (!fault->text[0]) add_refusal(fault, &g->driver);
        break;
    default: break;
    }
    if (!fault->text[0])
        gr_text_put(fault->text, sizeof(fault->text), "%s", granary_status_sentence(fault->status));
    gr_lock_take(&g->fault_lock);
    g->fault = *fault;
    gr_lock_give(&g->fault_lock);
    return fault->status;
}

int gr_fault_say(granary *g, const char *call, int status, const char *format, va_list arguments) {
    struct granary_fault fault;
    gr_fault_begin(&fault, call, status);
    gr_text_add_list(fault.text, sizeof(fault.text), format, arguments);
    return gr_fault_keep(g, &fault);
}

int gr_fault_fail(granary *g, const char *call, int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    status = gr_fault_say(g, call, status, format, arguments);
    va_end(arguments);
    return status;
}

bool gr_fault_fit(void *out, const void *from, size_t size) {
    size_t theirs;
    memcpy(&theirs, out, sizeof(theirs));
    if (theirs < sizeof(theirs) || theirs > 65536) return false;
    memcpy(out, from, gr_min(theirs, size));
    memcpy(out, &theirs, sizeof(theirs));
    if (theirs > size) memset((char *)out + size, 0, theirs - size);
    return true;
}

int gr_fault_copy_out(granary *g, const char *call, void *out, const void *from, size_t size) {
    size_t theirs;
    if (!out) return gr_fault_fail(g, call, GRANARY_INVALID, "out is NULL");
    if (gr_fault_fit(out, from, size)) return GRANARY_OK;
    memcpy(&theirs, out, sizeof(theirs));
    return gr_fault_fail(g, call, GRANARY_INVALID, "struct_size is %zu; set it to sizeof the struct", theirs);
}
