"""The hash index of `_index.h`, as Cython sees it."""
from libc.stdint cimport uint32_t


cdef extern from "_index.h" nogil:
    ctypedef struct index_t:
        size_t count

    ctypedef struct index_probe_t:
        pass

    index_probe_t index_probe(const index_t*, uint32_t)
    uint32_t index_next(index_probe_t*)
    void index_prefetch(const index_t*, uint32_t)
    int index_add(index_t*, uint32_t, uint32_t)
    void index_remove(index_t*, uint32_t, uint32_t)
    void index_free(index_t*)
    uint32_t hash_words(const uint32_t*, uint32_t)
