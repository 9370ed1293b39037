/* SPDX-License-Identifier: Apache-2.0
 * The calling thread's Python frames, through the public interface of the interpreter. */
#include "base/python.h"

#include <dlfcn.h>
#include <string.h>

static bool look_up(void *function, const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &found, sizeof(found));
    return found != NULL;
}

void gr_python_open(struct gr_python *p) {
    memset(p, 0, sizeof(*p));
    if (!look_up(&p->is_initialized, "Py_IsInitialized")) return;
    if (!look_up(&p->is_finalizing, "Py_IsFinalizing")) look_up(&p->is_finalizing, "_Py_IsFinalizing");
    look_up(&p->frame_lasti, "PyFrame_GetLasti");
    p->found = (look_up(&p->current_thread, "PyThreadState_GetUnchecked") ||
                look_up(&p->current_thread, "_PyThreadState_UncheckedGet")) &&
               look_up(&p->this_thread, "PyGILState_GetThisThreadState") &&
               look_up(&p->ensure, "PyGILState_Ensure") && look_up(&p->release, "PyGILState_Release") &&
               look_up(&p->frame, "PyEval_GetFrame") && look_up(&p->frame_back, "PyFrame_GetBack") &&
               look_up(&p->frame_code, "PyFrame_GetCode") &&
               look_up(&p->frame_line, "PyFrame_GetLineNumber") &&
               look_up(&p->code_line, "PyCode_Addr2Line") &&
               look_up(&p->attribute, "PyObject_GetAttrString") && look_up(&p->utf8, "PyUnicode_AsUTF8") &&
               look_up(&p->increase, "Py_IncRef") && look_up(&p->decrease, "Py_DecRef") &&
               look_up(&p->error_fetch, "PyErr_Fetch") && look_up(&p->error_restore, "PyErr_Restore");
}

struct key {
    uint64_t code, place; /* place: lasti, or the line where that is not to be had */
};

/* Copies a text attribute of the code object, and its end; at most room bytes with it. */
static size_t copy_attribute(const struct gr_python *p, void *code, const char *name, char *out,
                             size_t room) {
    void *text = p->attribute(code, name);
    const char *utf8 = text ? p->utf8(text) : NULL;
    size_t size = utf8 ? strnlen(utf8, room - 1) : 0;
    if (size) memcpy(out, utf8, size);
    out[size] = '\0';
    if (text) p->decrease(text);
    return size + 1;
}

/* A frame that is seen for the first time. The caller's own error, if one is on its way, is kept. */
static uint32_t resolve(const struct gr_python *p, struct gr_intern *frames, void *code,
                        const struct key *key) {
    enum { ROOM = 1024 };
    union {
        struct gr_python_frame frame;
        char room[ROOM + sizeof(struct gr_python_frame)];
    } value;
    void *error[3];
    p->error_fetch(&error[0], &error[1], &error[2]);
    value.frame.line = p->frame_lasti ? p->code_line(code, (int)key->place) : (int)key->place;
    char *text = value.room + offsetof(struct gr_python_frame, text);
    size_t used = copy_attribute(p, code, "co_name", text, ROOM / 2);
    used += copy_attribute(p, code, "co_filename", text + used, ROOM / 2);
    p->error_restore(error[0], error[1], error[2]);
    p->increase(code);
    uint32_t number =
        gr_intern_put(frames, key, sizeof(*key), &value, offsetof(struct gr_python_frame, text) + used);
    if (!number) p->decrease(code);
    return number;
}

static size_t walk(const struct gr_python *p, struct gr_intern *frames, uint64_t *out, size_t room) {
    size_t count = 0;
    void *frame = p->frame();
    if (frame) p->increase(frame);
    while (frame) {
        if (count < room) {
            void *code = p->frame_code(frame);
            struct key key = {
                .code = (uint64_t)(uintptr_t)code,
                .place = (uint64_t)(p->frame_lasti ? p->frame_lasti(frame) : p->frame_line(frame))};
            uint32_t number = gr_intern_find(frames, &key, sizeof(key));
            if (!number) number = resolve(p, frames, code, &key);
            p->decrease(code);
            if (number) out[count++] = number;
        }
        void *back = count < room ? p->frame_back(frame) : NULL;
        p->decrease(frame);
        frame = back;
    }
    return count;
}

size_t gr_python_take(const struct gr_python *p, struct gr_intern *frames, uint64_t *out, size_t room) {
    if (!p->found || !p->is_initialized() || (p->is_finalizing && p->is_finalizing())) return 0;
    void *mine = p->this_thread();
    if (!mine) return 0;
    if (p->current_thread() == mine) return walk(p, frames, out, room);
    int state = p->ensure();
    size_t count = walk(p, frames, out, room);
    p->release(state);
    return count;
}
