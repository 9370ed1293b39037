/* SPDX-License-Identifier: Apache-2.0
 * PyTorch on granary: the functions that PyTorch's CUDAPluggableAllocator calls, and those that
 * granary_torch.py calls. They are in libgranary_torch.so, together with the whole library.
 *
 *      torch ── alloc, free, record_stream, reset, fraction ──> granary_torch_* ──> one handle a device
 *      torch ── begin, end, release of a graph's pool ──────>        │    └──> pools by PyTorch's ids
 *      granary_torch.py ── expect (a capture comes) ────────>  the calling thread
 *                       └─ handle, stats, failure, warning
 *      granary_torch_* ── no memory ──> std::runtime_error, or what libgranary_torch_error.so throws
 *
 * A plug-in is there once for a process, so unlike the library it has a state of its own: one struct in
 * torch.c. A handle is opened when its device is first used, and stays until granary_torch_close.
 *
 * PyTorch's call for the begin of a pool does not say on which stream a capture is about to begin. So
 * granary_torch.py says it before, on the same thread (granary_torch_expect). A begin without that is a pool
 * for the calling thread.
 *
 * Only PyTorch's headers know PyTorch's own exception for want of memory. torch_error.cpp, which is made of them, is a
 * library of its own for one build of PyTorch; granary_torch.py hands its function over (granary_torch_set_thrower).
 *
 * Thread safety: all functions, but for configure and close, which no other call may overlap. Locks:
 * handles are read without one; opening a handle, pools and what is open of them have one lock, and
 * calls into the library are made under it, none of which calls back. */
#ifndef GRANARY_ADAPTER_TORCH_H
#define GRANARY_ADAPTER_TORCH_H

#include <sys/types.h>

#include <granary/granary.h>
#include <granary/history.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PyTorch's name for a pool: two numbers, passed by value as its std::pair is. */
struct granary_torch_id {
    uint64_t first, second;
};

/* ---- called by PyTorch ------------------------------------------------------------------------ */

/* Throws a C++ exception, whose words are those of granary_torch_failure, when there is no memory: PyTorch
 * would use NULL. What begins with "CUDA out of memory." is the thrower's, all else std::runtime_error. Of 0 bytes
 * it returns NULL. */
GRANARY_API void *granary_torch_alloc(ssize_t size, int device, granary_stream stream);
/* Cannot refuse: says on standard error what was wrong. */
GRANARY_API void granary_torch_free(void *ptr, ssize_t size, int device, granary_stream stream);
/* Throws when the use cannot be recorded: the memory would be reused too early. What is not granary's
 * memory is let through, as PyTorch's own allocator does. */
GRANARY_API void granary_torch_record_stream(void *ptr, granary_stream stream);
/* torch.cuda.empty_cache: idle memory of every device that is open goes back. */
GRANARY_API void granary_torch_reset(void);
/* torch.cuda.set_per_process_memory_fraction: a limit; 1 is none. memory_limit holds beside it. Throws
 * when it is not from 0 to 1, or the device cannot be opened. */
GRANARY_API void granary_torch_fraction(double fraction, int device);
/* From begin to end allocations come from the pool; the filter is a C++ object and is not used. Each begin
 * has one release, by which the pool goes when it is the last. begin throws as alloc does. */
GRANARY_API void granary_torch_begin(int device, struct granary_torch_id id, void *filter);
GRANARY_API void granary_torch_end(int device, struct granary_torch_id id);
GRANARY_API void granary_torch_release(int device, struct granary_torch_id id);

/* ---- called by granary_torch.py ----------------------------------------------------------------- */

/* Before the first use. conf: options as in GRANARY_CONF, on top of the environment; NULL: none.
 * simulated: the devices of granary/sim.h. Returns 0, or -1 with a sentence in granary_torch_failure, and
 * nothing is changed: a bad string, or a handle is open. */
GRANARY_API int granary_torch_configure(const char *conf, int simulated);
/* The index-th thing that was configured and is not done, as granary_options_warning tells it. Returns 0,
 * or -1: there are no more. */
GRANARY_API int granary_torch_warning(size_t index, char *buffer, size_t room);
/* What throws when there is no memory, given the words; it does not return. NULL, the default: std::runtime_error. */
typedef void (*granary_torch_thrower)(const char *words);
GRANARY_API void granary_torch_set_thrower(granary_torch_thrower thrower);
/* 0: devices that are used from now on do not open their memory to those used before, nor those to them;
 * 1, the default: they do. */
GRANARY_API void granary_torch_peers(int allow);
/* 1: the next begin on this thread is a capture of this stream; 0: it is not, after all. */
GRANARY_API void granary_torch_expect(int capture, granary_stream stream);
/* The end of a capture of this stream has failed, after which PyTorch says neither end nor release: it
 * ends, and its pool has a user less. Nothing where none is open. The next begin of a capture on the
 * stream does the same. */
GRANARY_API void granary_torch_broken(int device, granary_stream stream);
/* The handle of a device, opened if need be, or NULL with a sentence in granary_torch_failure. */
GRANARY_API granary *granary_torch_handle(int device);
/* What torch.cuda.memory_stats names, and what granary counts more, in lines "name value". Returns the
 * length that the whole has, as snprintf does, or -1 with a sentence in granary_torch_failure. */
GRANARY_API int granary_torch_stats(int device, char *buffer, size_t room);
/* The words of the last failure on this thread; "" before the first. They stay until the next one. */
GRANARY_API const char *granary_torch_failure(void);
/* Closes every handle and forgets what was configured. */
GRANARY_API void granary_torch_close(void);

/* ---- between the two files of the adapter ------------------------------------------------------- */

/* The same without exceptions: what they throw is in granary_torch_failure. Whatever begins with "CUDA out of memory."
 * is GRANARY_OUT_OF_MEMORY, and nothing else is. */
int gr_torch_alloc(size_t size, int device, granary_stream stream, void **out);
int gr_torch_record_stream(void *ptr, granary_stream stream);
int gr_torch_fraction(double fraction, int device);
int gr_torch_begin(int device, struct granary_torch_id id);
granary_torch_thrower gr_torch_thrower(void);

#ifdef __cplusplus
}
#endif
#endif
