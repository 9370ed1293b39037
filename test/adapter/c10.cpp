// SPDX-License-Identifier: Apache-2.0
// A stand-in for PyTorch's libc10.so.
#include <c10/util/Exception.h>

c10::Error::Error(std::string words) : words(std::move(words)) {
}
