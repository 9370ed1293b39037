/* SPDX-License-Identifier: Apache-2.0
 * A stand-in for PyTorch's header: as much of it as src/adapter/torch_error.cpp uses. */
#ifndef GRANARY_TEST_STANDIN_EXCEPTION_H
#define GRANARY_TEST_STANDIN_EXCEPTION_H

#include <exception>
#include <string>

#define C10_API __attribute__((visibility("default")))

namespace c10 {

class C10_API Error : public std::exception {
    std::string words;

  public:
    explicit Error(std::string words); /* in libc10.so */
    const char *what() const noexcept override {
        return words.c_str();
    }
};

class C10_API OutOfMemoryError : public Error {
    using Error::Error;
};

} // namespace c10

#define C10_THROW_ERROR(type, words) throw ::c10::type(words)

#endif
