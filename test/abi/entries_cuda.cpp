/* SPDX-License-Identifier: Apache-2.0
 * The signature of every entry agrees with the toolkit's typedef of that exact version.
 *
 * cudaTypedefs.h names a type for each version of each symbol (PFN_cuMemCreate_v10020). Ours differ
 * in the names of structs and in int for enumerations, so the types are not the same; what is compared
 * is all that a call depends on: the number of parameters, and of each one the size, the alignment and
 * the kind, through pointers down to what they point at, which is const in both or in neither.
 * Compiling is the test. */
#if __has_include(<cuda.h>) && __has_include(<cudaTypedefs.h>)
#include <cuda.h>
#include <cudaTypedefs.h>
#endif

#if defined(CUDA_VERSION) && CUDA_VERSION >= 12030
#include <type_traits>

#include "driver/abi.h"

namespace {

template <typename Ours, typename Theirs> constexpr bool agree() {
    if constexpr (std::is_same_v<Ours, Theirs>) {
        return true;
    } else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
        using O = std::remove_pointer_t<Ours>;
        using T = std::remove_pointer_t<Theirs>;
        return std::is_const_v<O> == std::is_const_v<T> &&
               agree<std::remove_const_t<O>, std::remove_const_t<T>>();
    } else if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
        return false; /* the same type or a mistake */
    } else {
        constexpr bool numbers = (std::is_integral_v<Ours> || std::is_enum_v<Ours>)&&(
            std::is_integral_v<Theirs> || std::is_enum_v<Theirs>);
        constexpr bool structs = std::is_class_v<Ours> && std::is_class_v<Theirs>;
        return (numbers || structs) && sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
    }
}

template <typename, typename> struct same_call : std::false_type {};
template <typename R, typename... A, typename S, typename... B> struct same_call<R (*)(A...), S (*)(B...)> {
    static constexpr bool value = [] {
        if constexpr (sizeof...(A) == sizeof...(B))
            return agree<R, S>() && (agree<A, B>() && ...);
        else
            return false;
    }();
};

/* The comparison itself: it must tell apart what a call would get wrong. */
static_assert(same_call<int (*)(int), CUresult (*)(CUdevice_attribute)>::value, "enumerations are ints");
static_assert(!same_call<int (*)(int), CUresult (*)(int, int)>::value, "number of parameters");
static_assert(!same_call<int (*)(int), CUresult (*)(size_t)>::value, "size");
static_assert(!same_call<int (*)(size_t), CUresult (*)(void *)>::value, "kind");
static_assert(!same_call<int (*)(int *), CUresult (*)(size_t *)>::value, "size of what is pointed at");
static_assert(!same_call<int (*)(int *), CUresult (*)(const int *)>::value, "const");
static_assert(!same_call<int (*)(gr_cu_edge *), CUresult (*)(CUmemLocation *)>::value, "struct");

} // namespace

#define GR_ENTRY(symbol, version, need, kind, parameters) \
    static_assert(same_call<gr_cu_result(*) parameters, PFN_##symbol##_v##version>::value, #symbol);
#include "driver/entries.def"
#undef GR_ENTRY

#endif
