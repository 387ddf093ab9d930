"""The scanner of `_scan.h`, as Cython sees it."""
from libc.stdint cimport uint8_t, uint64_t


cdef extern from "_scan.h" nogil:
    ctypedef struct scan_t:
        uint64_t* marks
        size_t blocks
        size_t depth

    ctypedef struct scan_kernel_t:
        const char* name
        size_t (*lex)(scan_t*, const uint8_t*, size_t) noexcept
        size_t (*skip)(const scan_t*, size_t, size_t) noexcept

    void scan_start(scan_t*)
    int scan_reserve(scan_t*, size_t)
    void scan_free(scan_t*)
    size_t scan_mark(const scan_t*, size_t, size_t)
    const scan_kernel_t* scan_kernel(const char*)
