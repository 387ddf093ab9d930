"""Short strings of `_bytes.h`, as Cython sees them."""
from libc.stdint cimport uint32_t, uint64_t


cdef extern from "_bytes.h" nogil:
    ctypedef struct key_words_t:
        uint64_t first, last

    cdef enum:
        BYTES_CONTROL
        BYTES_WIDE

    key_words_t key_words(const char*, size_t)
    bint same_words(key_words_t, key_words_t)
    bint same_bytes(const char*, const char*, size_t)
    int byte_classes(const char*, size_t)
    uint32_t hash_bytes(const char*, size_t, uint64_t seed)
