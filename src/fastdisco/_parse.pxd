"""Reads one JSON object into the words of a record: the fields, with a line for each."""
from libc.stdint cimport uint8_t, uint32_t

from ._core cimport Symbols
from ._fields cimport Field, Schema
from ._scan cimport scan_kernel_t, scan_t

cdef struct Text:           # a string of the object that is not a symbol yet
    const char* at          # NULL: in `unescaped`
    uint32_t length
    uint32_t offset         # in `unescaped`
    uint32_t hash           # and then the symbol

cdef struct Words:
    uint32_t* at
    uint32_t count, capacity

cdef class Parser:
    cdef Symbols symbols
    cdef const scan_kernel_t* kernel
    cdef scan_t scan                # masks of the value that `item` is
    cdef Words stack                # the root struct, then structs of open lists; after `read` the whole record
    cdef Words lists                # finished lists
    cdef uint32_t root              # words of the root struct
    cdef Text* texts
    cdef uint32_t text_count, text_capacity
    cdef uint32_t* recent           # by text: what it was in the object read before; freed since, perhaps, and another string's now
    cdef uint32_t recent_count
    cdef uint32_t* missed           # texts that are not what they were
    cdef char* unescaped
    cdef uint32_t unescaped_count, unescaped_capacity
    cdef const uint8_t* item
    cdef size_t at, end             # the next byte, and where the item ends
    cdef const char* why            # the error, if there is one, found at `at`
    cdef const char* version        # the object's resource version: bytes of the item, quotes left out; NULL: in `unescaped`
    cdef uint32_t version_length    # 0: none
    cdef uint32_t version_offset    # in `unescaped`

    cdef int read(self, const uint8_t* item, size_t at, size_t end, Schema* schema) except -1
    cdef void begin(self, const uint8_t* item, size_t at, size_t end) noexcept
    cdef int fail(self, const char* why, size_t at) noexcept
    cdef int key(self, Schema* schema) except -3
    cdef int skip(self) except -1

    cdef int finish(self) except -1
    cdef int resolve(self) except -1
    cdef int remember(self, uint32_t count) except -1
    cdef bint is_raw(self, const char* at) noexcept
    cdef uint32_t new_symbol(self, const char* at, uint32_t length, uint32_t hash) except 0
    cdef int object(self, Schema* schema, uint32_t struct_at) except -1
    cdef int value(self, Field* field, uint32_t struct_at) except -1
    cdef int literal(self, const char* text, size_t length) noexcept
    cdef int text(self, uint32_t* word) except -1
    cdef int pend(self, const char* at, uint32_t length, uint32_t offset, uint32_t* word) except -1
    cdef int number(self, uint32_t* word) except -1
    cdef bint fits(self, size_t start, size_t digits) noexcept
    cdef int resource_version(self) except -1
    cdef int array(self, Field* field, uint32_t* word) except -1
    cdef int first(self, Field* field, uint32_t struct_at) except -1
    cdef bint decides(self, Schema* schema, uint32_t word) noexcept
    cdef int pairs(self, uint32_t* word) except -1
    cdef int compare(self, uint32_t first, uint32_t second) noexcept
    cdef int sort_pairs(self, uint32_t base) except -1
    cdef void merge(self, const uint32_t* pairs, uint32_t* merged, uint32_t start, uint32_t middle, uint32_t end) noexcept
    cdef int unescape(self, size_t start) except -1
    cdef bint hex4(self, size_t at, size_t stop, uint32_t* code) noexcept
    cdef int room(self, uint32_t size) except -1
    cdef int push(self, Words* to, const uint32_t* words, uint32_t count) except -1
    cdef int reserve(self, Words* to, uint32_t more) except -1
    cdef int close(self, uint32_t base, int size, uint32_t* word) except -1
    cdef void clear(self, Field* field, uint32_t struct_at) noexcept

    cdef inline uint8_t peek(self) noexcept:
        """The next byte that is no white space; 0 at the end; 1, which nothing accepts, for a control character."""
        while self.at < self.end:
            if self.item[self.at] > 0x20:
                return self.item[self.at]
            if self.item[self.at] not in b" \n\r\t":
                return 1
            self.at += 1
        return 0
