/* SPDX-License-Identifier: Apache-2.0
 * Characters behind the escapes of other formats, as UTF-8. */
#include "tool/escape.h"

#include <string.h>

size_t escape_put(char *to, uint32_t c) {
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 0x3f));
        to[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 0x3f));
    to[2] = (char)(0x80 | (c >> 6 & 0x3f));
    to[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

bool escape_hex(const char *text, size_t digits, uint32_t *out) {
    *out = 0;
    for (size_t i = 0; i < digits; i++) {
        uint32_t digit, c = (unsigned char)text[i];
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            digit = (c | 0x20) - 'a' + 10;
        else
            return false;
        *out = *out << 4 | digit;
    }
    return true;
}

bool escape_unicode(const char *text, size_t length, char *out, size_t *used) {
    *used = 0;
    for (size_t i = 0; i < length; i++) {
        uint32_t c = (unsigned char)text[i];
        if (c == '\\' && i + 1 < length && (text[i + 1] == 'u' || text[i + 1] == 'U')) {
            size_t digits = text[i + 1] == 'u' ? 4 : 8;
            if (i + 2 + digits > length || !escape_hex(text + i + 2, digits, &c) || c > 0x10ffff)
                return false;
            i += 1 + digits;
        }
        *used += escape_put(out + *used, c);
    }
    return true;
}

void escape_repr(const char *text, size_t length, char *out, size_t *used) {
    static const char letters[] = "abfnrtv\\'\"", means[] = "\a\b\f\n\r\t\v\\'\"";
    *used = 0;
    for (size_t i = 0; i < length; i++) {
        const char *found;
        uint32_t c;
        out[(*used)++] = text[i];
        if (text[i] != '\\' || i + 1 >= length) continue;
        found = memchr(letters, text[i + 1], sizeof letters - 1);
        if (found != NULL) {
            out[*used - 1] = means[found - letters];
            i++;
        } else if (text[i + 1] == 'x' && i + 3 < length && escape_hex(text + i + 2, 2, &c)) {
            out[*used - 1] = (char)c;
            i += 3;
        }
    }
}

size_t escape_length(const char *bytes, size_t left) {
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *text = (const unsigned char *)bytes;
    size_t length = text[0] < 0x80 ? 1 : text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : text[0] >= 0xc0 ? 2 : 0;
    uint32_t c;
    if (length == 0 || length > left || text[0] > 0xf4) return 0;
    c = length == 1 ? text[0] : text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (text[i] & 0x3f);
    }
    if (c < lowest[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
    return c < 0x20 || (c >= 0x7f && c < 0xa0) ? 0 : length;
}

void escape_clean(const char *text, size_t length, char *out) {
    for (size_t i = 0; i < length;) {
        size_t step = escape_length(text + i, length - i);
        if (step == 0) {
            *out++ = '?';
            i++;
        } else {
            memcpy(out, text + i, step);
            out += step;
            i += step;
        }
    }
    *out = 0;
}
