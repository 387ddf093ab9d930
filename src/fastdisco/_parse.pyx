"""Reads one JSON object into the words of a record.

    item and masks -> grammar, guided by a schema -> words with strings pending -> symbols

Only the paths of `_fields.pyx` are read; the rest is skipped by its brackets, and of it only strings and balance are checked.
"""
import cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memset

from ._core cimport Symbols
from ._fields cimport (
    ABSENT, EMPTY, FALSE, FIRST, FLAG, KEY_LENGTHS, LITERAL, NO_WORD, NUMBER, OBJECT, PAIRS, PENDING, TEXT, TEXTS, TRUE, VERSION,
    Field, Schema,
)
from ._bytes cimport BYTES_CONTROL, BYTES_WIDE, byte_classes, hash_bytes, key_words, key_words_t, same_words
from ._index cimport index_prefetch
from ._scan cimport scan_free, scan_kernel, scan_mark


cdef inline char* put_utf8(char* to, uint32_t code) noexcept:
    if code < 0x80:
        to[0] = <char> code
        return to + 1
    if code < 0x800:
        to[0] = <char> (0xC0 | code >> 6)
        to[1] = <char> (0x80 | code & 0x3F)
        return to + 2
    if code < 0x10000:
        to[0] = <char> (0xE0 | code >> 12)
        to[1] = <char> (0x80 | code >> 6 & 0x3F)
        to[2] = <char> (0x80 | code & 0x3F)
        return to + 3
    to[0] = <char> (0xF0 | code >> 18)
    to[1] = <char> (0x80 | code >> 12 & 0x3F)
    to[2] = <char> (0x80 | code >> 6 & 0x3F)
    to[3] = <char> (0x80 | code & 0x3F)
    return to + 4


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class Parser:
    """Reads one object into words: the root struct and open lists on `stack`, finished lists on `lists`."""

    def __cinit__(self, Symbols symbols not None, str kernel=""):
        self.symbols = symbols
        self.kernel = scan_kernel(kernel.encode())
        if self.kernel == NULL:
            raise ValueError(f"this processor has no kernel {kernel!r}")

    def __dealloc__(self):
        scan_free(&self.scan)
        free(self.stack.at)
        free(self.lists.at)
        free(self.texts)
        free(self.unescaped)
        free(self.recent)
        free(self.missed)

    cdef int read(self, const uint8_t* item, size_t at, size_t end, Schema* schema) except -1:
        """The object at `at` in `item`, whose masks are made, as words on `stack`; 0 and `why` if it is not valid."""
        self.begin(item, at, end)
        self.root = <uint32_t> schema.size
        if not self.object(schema, self.room(schema.size)):
            return 0
        return self.finish()

    cdef void begin(self, const uint8_t* item, size_t at, size_t end) noexcept:
        self.item = item
        self.at = at
        self.end = end
        self.why = NULL
        self.version = NULL
        self.version_length = 0
        self.stack.count = self.lists.count = 0
        self.text_count = self.unescaped_count = 0

    cdef int finish(self) except -1:
        """Puts the lists behind the root struct and makes symbols of the texts."""
        cdef uint32_t i, word
        self.push(&self.stack, self.lists.at, self.lists.count)
        if not self.resolve():
            return 0
        for i in range(self.stack.count):
            word = self.stack.at[i]
            if word >= PENDING:
                self.stack.at[i] = self.texts[word & ~PENDING].hash
        return 1

    cdef int resolve(self) except -1:
        """Each text's symbol, in place of its hash.

        Most texts are what the object before had in the same place. Of the others first all hashes, so that the look-ups need not
        wait for memory one by one.
        """
        cdef uint32_t i, j, id
        cdef uint32_t missed = 0
        cdef Text* text
        cdef const char* bytes_at
        if self.text_count > self.recent_count:
            self.remember(self.text_count)
        for i in range(self.text_count):
            text = &self.texts[i]
            if text.at == NULL:
                text.at = self.unescaped + text.offset
            if self.symbols.take_same(self.recent[i], text.at, text.length) and not self.symbols.is_controlled(self.recent[i]):
                text.hash = self.recent[i]
                continue
            text.hash = hash_bytes(text.at, text.length, self.symbols.seed)
            index_prefetch(&self.symbols.index, text.hash)
            self.missed[missed] = i
            missed += 1
        for j in range(missed):
            i = self.missed[j]
            text = &self.texts[i]
            bytes_at = text.at
            id = self.symbols.find(bytes_at, text.length, text.hash)
            # what is a symbol has been found valid before, unless control characters came in by escapes
            if id == 0 or self.symbols.is_controlled(id):
                if self.is_raw(bytes_at) and byte_classes(bytes_at, text.length) & BYTES_CONTROL:
                    return self.fail("a control character in a string", <size_t> (<const uint8_t*> bytes_at - self.item))
                if id == 0:
                    id = self.new_symbol(bytes_at, text.length, text.hash)
            text.hash = id
            self.recent[i] = id
        return 1

    cdef int remember(self, uint32_t count) except -1:
        """Room to remember that many texts of an object."""
        cdef uint32_t more = max(count, 2 * self.recent_count)
        cdef uint32_t* grown = <uint32_t*> realloc(self.recent, more * sizeof(uint32_t))
        if grown == NULL:
            raise MemoryError
        self.recent = grown
        memset(grown + self.recent_count, 0, (more - self.recent_count) * sizeof(uint32_t))
        grown = <uint32_t*> realloc(self.missed, more * sizeof(uint32_t))
        if grown == NULL:
            raise MemoryError
        self.missed = grown
        self.recent_count = more
        return 0

    cdef bint is_raw(self, const char* at) noexcept:
        return <const uint8_t*> at >= self.item and <const uint8_t*> at < self.item + self.end

    cdef uint32_t new_symbol(self, const char* at, uint32_t length, uint32_t hash) except 0:
        cdef bytes clean
        if byte_classes(at, length) & BYTES_WIDE:
            # bytes that are not UTF-8, lone surrogates too, read as U+FFFD
            clean = at[:length].decode("utf-8", "replace").encode()
            return self.symbols.intern(PyBytes_AS_STRING(clean), PyBytes_GET_SIZE(clean))
        return self.symbols.add(at, length, hash)

    # ---- the grammar: each function reads one thing at `at` and returns 0 with `why` if it is not there ----

    cdef int fail(self, const char* why, size_t at) noexcept:
        self.why = why
        self.at = at
        return 0

    cdef int object(self, Schema* schema, uint32_t struct_at) except -1:
        """An object into the struct at `struct_at` on the stack."""
        cdef uint32_t seen = 0
        cdef int found
        cdef uint8_t byte
        if self.peek() != b"{":
            return self.fail("expected an object", self.at)
        self.at += 1
        if self.peek() == b"}":
            self.at += 1
            return 1
        while True:
            found = self.key(schema)
            if found == -2:
                return 0
            if found == -1:
                if not self.skip():
                    return 0
            else:
                if seen >> found & 1:
                    # the last of equal keys replaces the earlier one whole
                    self.clear(&schema.fields[found], struct_at)
                seen |= <uint32_t> 1 << found
                if not self.value(&schema.fields[found], struct_at):
                    return 0
            byte = self.peek()
            if byte != b"," and byte != b"}":
                return self.fail("expected , or }", self.at)
            self.at += 1
            if byte == b"}":
                return 1

    cdef int key(self, Schema* schema) except -3:
        """A key and its colon: the number of the field, -1 for one that is not read, -2 for an error."""
        cdef size_t start, stop
        cdef int i
        cdef const char* text
        cdef uint32_t length
        cdef key_words_t words
        cdef Field* field
        if self.peek() != b'"':
            self.fail("expected a key", self.at)
            return -2
        start = self.at + 1
        stop = scan_mark(&self.scan, start, self.end)
        if stop >= self.end:
            self.fail("a string without end", start)
            return -2
        text = <const char*> self.item + start
        length = <uint32_t> (stop - start)
        if self.item[stop] != b'"':
            i = self.unescaped_count
            if not self.unescape(start):
                return -2
            text = self.unescaped + i
            length = self.unescaped_count - i
            stop = self.at - 1
        self.at = stop + 1
        if self.peek() != b":":
            self.fail("expected :", self.at)
            return -2
        self.at += 1
        i = schema.first[length] if length < KEY_LENGTHS else 0
        if i == 0:
            return -1
        words = key_words(text, length)
        for i in range(i - 1, schema.count):
            field = &schema.fields[i]
            if field.length == length and same_words(field.words, words) and (length <= 16 or memcmp(field.key, text, length) == 0):
                return i
        return -1

    cdef int value(self, Field* field, uint32_t struct_at) except -1:
        cdef uint8_t byte = self.peek()
        cdef uint32_t word
        if byte == b"n":
            return self.literal(b"null", 4)
        if field.action == TEXT:
            return self.text(&self.stack.at[struct_at + field.word])
        if field.action == OBJECT:
            if field.word != NO_WORD:
                self.stack.at[struct_at + field.word] = TRUE
            return self.object(field.inner, struct_at)
        if field.action == NUMBER:
            return self.number(&self.stack.at[struct_at + field.word])
        if field.action == FLAG:
            self.stack.at[struct_at + field.word] = TRUE if byte == b"t" else FALSE
            return self.literal(b"true", 4) if byte == b"t" else self.literal(b"false", 5)
        if field.action == VERSION:
            return self.resource_version()
        if field.action == PAIRS:
            if not self.pairs(&word):
                return 0
        elif field.action == FIRST:
            return self.first(field, struct_at)
        elif not self.array(field, &word):
            return 0
        self.stack.at[struct_at + field.word] = word
        return 1

    cdef int literal(self, const char* text, size_t length) noexcept:
        if self.end - self.at < length or memcmp(self.item + self.at, text, length):
            return self.fail("expected true, false or null" if text[0] == b"n" else "expected true or false", self.at)
        self.at += length
        return 1

    cdef int text(self, uint32_t* word) except -1:
        """A string, pending, into `word`; the word may move if anything is pushed, and nothing is."""
        cdef size_t start, stop
        if self.peek() != b'"':
            return self.fail("expected a string", self.at)
        start = self.at + 1
        stop = scan_mark(&self.scan, start, self.end)
        if stop < self.end and self.item[stop] == b'"':
            self.at = stop + 1
            return self.pend(<const char*> self.item + start, <uint32_t> (stop - start), 0, word)
        cdef uint32_t offset = self.unescaped_count
        if not self.unescape(start):
            return 0
        return self.pend(NULL, self.unescaped_count - offset, offset, word)

    cdef int pend(self, const char* at, uint32_t length, uint32_t offset, uint32_t* word) except -1:
        cdef Text* grown
        if self.text_count == self.text_capacity:
            self.text_capacity = self.text_capacity * 2 if self.text_capacity else 512
            grown = <Text*> realloc(self.texts, self.text_capacity * sizeof(Text))
            if grown == NULL:
                raise MemoryError
            self.texts = grown
        self.texts[self.text_count].at = at
        self.texts[self.text_count].length = length
        self.texts[self.text_count].offset = offset
        word[0] = PENDING | self.text_count
        self.text_count += 1
        return 1

    cdef int number(self, uint32_t* word) except -1:
        """An integer of 64 bits, kept as its text."""
        cdef size_t start = self.at
        cdef size_t digits
        if self.item[self.at] == b"-":
            self.at += 1
        digits = self.at
        while self.at < self.end and b"0" <= self.item[self.at] <= b"9":
            self.at += 1
        if self.at == digits:
            return self.fail("expected an integer", start)
        if self.at < self.end and self.item[self.at] in b".eE":
            return self.fail("expected an integer, not a fraction", start)
        if self.item[digits] == b"0":
            if self.at - digits > 1:
                return self.fail("an integer with a leading zero", start)
            start = digits      # -0 is 0
        elif self.at - digits > 18 and not self.fits(start, digits):
            return self.fail("an integer above 64 bits", start)
        return self.pend(<const char*> self.item + start, <uint32_t> (self.at - start), 0, word)

    cdef bint fits(self, size_t start, size_t digits) noexcept:
        cdef const char* most = b"18446744073709551615" if start == digits else b"9223372036854775808"
        cdef size_t length = self.at - digits
        cdef size_t longest = 20 if start == digits else 19
        return length < longest or (length == longest and memcmp(self.item + digits, most, length) <= 0)

    cdef int resource_version(self) except -1:
        cdef size_t start, stop
        if self.peek() != b'"':
            return self.fail("expected a string", self.at)
        start = self.at + 1
        stop = scan_mark(&self.scan, start, self.end)
        if stop >= self.end or self.item[stop] != b'"':
            self.version = NULL
            self.version_offset = self.unescaped_count
            if not self.unescape(start):
                return 0
            self.version_length = self.unescaped_count - self.version_offset
            return 1
        self.version = <const char*> self.item + start
        self.version_length = <uint32_t> (stop - start)
        if byte_classes(self.version, self.version_length) & BYTES_CONTROL:
            return self.fail("a control character in a string", start)
        self.at = stop + 1
        return 1

    cdef int array(self, Field* field, uint32_t* word) except -1:
        """An array as a list: its structs gather on the stack, and go to `lists` when it ends."""
        cdef uint32_t base = self.stack.count
        cdef uint32_t at
        cdef int size = 1 if field.action == TEXTS else field.inner.size
        cdef uint8_t byte
        if self.peek() != b"[":
            return self.fail("expected an array", self.at)
        self.at += 1
        if self.peek() == b"]":
            self.at += 1
            return self.close(base, size, word)
        while True:
            at = self.room(size)
            if self.peek() == b"n":
                # a null element is one whose fields are all absent, and the empty string
                if not self.literal(b"null", 4):
                    return 0
                if field.action == TEXTS:
                    self.stack.at[at] = EMPTY
            elif field.action == TEXTS:
                if not self.text(&self.stack.at[at]):
                    return 0
            elif not self.object(field.inner, at):
                return 0
            byte = self.peek()
            if byte != b"," and byte != b"]":
                return self.fail("expected , or ]", self.at)
            self.at += 1
            if byte == b"]":
                return self.close(base, size, word)

    cdef int first(self, Field* field, uint32_t struct_at) except -1:
        """Of an array of objects the first that decides; the words of the others are given up."""
        cdef uint32_t base = self.stack.count
        cdef uint32_t word
        cdef uint32_t lists = self.lists.count
        cdef Schema* schema = field.inner
        cdef uint32_t* struct_words
        if not self.array(field, &word):
            return 0
        word = (word & ~LITERAL) - self.root
        cdef uint32_t count = self.lists.at[word] & ~LITERAL
        cdef uint32_t i, j
        for i in range(count):
            struct_words = &self.lists.at[word + 1 + i * schema.size]
            if self.decides(schema, struct_words[schema.where]):
                for j in range(schema.copied):
                    self.stack.at[struct_at + field.word + j] = struct_words[schema.source + j] or EMPTY
                break
        self.lists.count = lists
        self.stack.count = base
        return 1

    cdef bint decides(self, Schema* schema, uint32_t word) noexcept:
        cdef Text* text
        cdef size_t length
        if schema.equals == NULL or word < PENDING:
            return schema.equals == NULL and word == TRUE
        text = &self.texts[word & ~PENDING]
        length = 0
        while schema.equals[length]:
            length += 1
        return text.length == length and memcmp(text.at if text.at != NULL else self.unescaped + text.offset, schema.equals, length) == 0

    cdef int pairs(self, uint32_t* word) except -1:
        """An object of strings, sorted by key; null values are empty strings."""
        cdef uint32_t base = self.stack.count
        cdef uint32_t at
        cdef bint sorted_so_far = True
        cdef uint8_t byte
        if self.peek() != b"{":
            return self.fail("expected an object", self.at)
        self.at += 1
        if self.peek() == b"}":
            self.at += 1
            return self.close(base, 2, word)
        while True:
            at = self.room(2)
            if self.peek() != b'"':
                return self.fail("expected a key", self.at)
            if not self.text(&self.stack.at[at]):
                return 0
            if at > base and sorted_so_far:
                sorted_so_far = self.compare(self.stack.at[at - 2], self.stack.at[at]) < 0
            if self.peek() != b":":
                return self.fail("expected :", self.at)
            self.at += 1
            if self.peek() == b"n":
                if not self.literal(b"null", 4):
                    return 0
                self.stack.at[at + 1] = EMPTY
            elif not self.text(&self.stack.at[at + 1]):
                return 0
            byte = self.peek()
            if byte != b"," and byte != b"}":
                return self.fail("expected , or }", self.at)
            self.at += 1
            if byte == b"}":
                if not sorted_so_far:
                    self.sort_pairs(base)
                return self.close(base, 2, word)

    cdef int compare(self, uint32_t first, uint32_t second) noexcept:
        """Order of two pending texts by their bytes."""
        cdef Text* a = &self.texts[first & ~PENDING]
        cdef Text* b = &self.texts[second & ~PENDING]
        cdef int order = memcmp(
            a.at if a.at != NULL else self.unescaped + a.offset,
            b.at if b.at != NULL else self.unescaped + b.offset,
            min(a.length, b.length),
        )
        if order:
            return order
        return -1 if a.length < b.length else a.length > b.length

    cdef int sort_pairs(self, uint32_t base) except -1:
        """By merging: servers send maps sorted, so this is for others. Of equal keys the last stays."""
        cdef uint32_t count = (self.stack.count - base) // 2
        self.reserve(&self.stack, 2 * count)
        cdef uint32_t* pairs = self.stack.at + base
        cdef uint32_t* merged = pairs + 2 * count
        cdef uint32_t width = 1
        cdef uint32_t start, i
        cdef uint32_t kept = 0
        while width < count:
            for start in range(0, count, 2 * width):
                self.merge(pairs, merged, start, min(start + width, count), min(start + 2 * width, count))
            pairs, merged = merged, pairs
            width *= 2
        merged = self.stack.at + base
        for i in range(count):
            if kept and self.compare(merged[2 * kept - 2], pairs[2 * i]) == 0:
                kept -= 1
            merged[2 * kept] = pairs[2 * i]
            merged[2 * kept + 1] = pairs[2 * i + 1]
            kept += 1
        self.stack.count = base + 2 * kept
        return 0

    cdef void merge(self, const uint32_t* pairs, uint32_t* merged, uint32_t start, uint32_t middle, uint32_t end) noexcept:
        """Two sorted runs into one; of equal keys the earlier one comes first."""
        cdef uint32_t first = start
        cdef uint32_t second = middle
        cdef uint32_t i, taken
        for i in range(start, end):
            if second == end or (first < middle and self.compare(pairs[2 * first], pairs[2 * second]) <= 0):
                taken = first
                first += 1
            else:
                taken = second
                second += 1
            merged[2 * i] = pairs[2 * taken]
            merged[2 * i + 1] = pairs[2 * taken + 1]

    cdef int skip(self) except -1:
        """A value that is not read."""
        cdef uint8_t byte = self.peek()
        cdef size_t start = self.at
        if byte == b'"':
            self.at += 1
            while True:
                self.at = scan_mark(&self.scan, self.at, self.end)
                if self.at >= self.end:
                    return self.fail("a string without end", start)
                self.at += 1
                if self.item[self.at - 1] == b'"':
                    return 1
        if byte == b"{" or byte == b"[":
            self.at = self.kernel.skip(&self.scan, self.at, self.end)
            return 1
        while self.at < self.end and self.item[self.at] > 0x20 and self.item[self.at] not in b',}]:"{[':
            self.at += 1
        if self.at == start:
            return self.fail("expected a value", start)
        return 1

    cdef int unescape(self, size_t start) except -1:
        """A string with escapes, from after its quote, onto `unescaped`; `at` is after the closing quote then."""
        cdef size_t stop = start
        cdef size_t i
        cdef uint32_t code, low
        cdef char* to
        cdef uint8_t byte
        cdef char* grown
        while True:
            stop = scan_mark(&self.scan, stop, self.end)
            if stop >= self.end:
                return self.fail("a string without end", start)
            if self.item[stop] == b'"':
                break
            stop += 1
        # an escape is never shorter than what it stands for
        if self.unescaped_count + (stop - start) > self.unescaped_capacity:
            self.unescaped_capacity = <uint32_t> ((self.unescaped_count + (stop - start)) * 2)
            grown = <char*> realloc(self.unescaped, self.unescaped_capacity)
            if grown == NULL:
                raise MemoryError
            self.unescaped = grown
        to = self.unescaped + self.unescaped_count
        i = start
        while i < stop:
            byte = self.item[i]
            if byte < 0x20:
                return self.fail("a control character in a string", i)
            if byte != b"\\":
                to[0] = <char> byte
                to += 1
                i += 1
                continue
            byte = self.item[i + 1]
            i += 2
            if byte == b"u":
                if not self.hex4(i, stop, &code):
                    return self.fail("expected four hexadecimal digits", i)
                i += 4
                if 0xD800 <= code < 0xDC00 and i + 6 <= stop and self.item[i] == b"\\" and self.item[i + 1] == b"u" \
                        and self.hex4(i + 2, stop, &low) and 0xDC00 <= low < 0xE000:
                    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                    i += 6
                elif 0xD800 <= code < 0xE000:
                    code = 0xFFFD
                to = put_utf8(to, code)
                continue
            if byte == b"n":
                byte = b"\n"
            elif byte == b"t":
                byte = b"\t"
            elif byte == b"r":
                byte = b"\r"
            elif byte == b"b":
                byte = b"\b"
            elif byte == b"f":
                byte = b"\f"
            elif byte != b'"' and byte != b"\\" and byte != b"/":
                return self.fail("an escape that JSON does not have", i - 2)
            to[0] = <char> byte
            to += 1
        self.unescaped_count = <uint32_t> (to - self.unescaped)
        self.at = stop + 1
        return 1

    cdef bint hex4(self, size_t at, size_t stop, uint32_t* code) noexcept:
        cdef size_t i
        cdef uint8_t byte
        code[0] = 0
        if at + 4 > stop:
            return False
        for i in range(at, at + 4):
            byte = self.item[i]
            if b"0" <= byte <= b"9":
                byte -= 0x30
            elif b"a" <= (byte | 0x20) <= b"f":
                byte = (byte | 0x20) - 0x61 + 10
            else:
                return False
            code[0] = code[0] << 4 | byte
        return True

    # ---- words ----

    cdef int room(self, uint32_t size) except -1:
        """`size` absent words on the stack; where they begin."""
        cdef uint32_t at = self.stack.count
        self.reserve(&self.stack, size)
        memset(self.stack.at + at, 0, size * sizeof(uint32_t))
        self.stack.count += size
        return <int> at

    cdef int push(self, Words* to, const uint32_t* words, uint32_t count) except -1:
        self.reserve(to, count)
        if count == 0:
            return 0
        memcpy(to.at + to.count, words, count * sizeof(uint32_t))
        to.count += count
        return 0

    cdef int reserve(self, Words* to, uint32_t more) except -1:
        cdef uint32_t* grown
        if to.count + more > to.capacity:
            to.capacity = (to.count + more) * 2 + 256
            grown = <uint32_t*> realloc(to.at, to.capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            to.at = grown
        return 0

    cdef int close(self, uint32_t base, int size, uint32_t* word) except -1:
        """Moves the structs from `base` on to `lists`, behind their count."""
        cdef uint32_t words = self.stack.count - base
        cdef uint32_t count = LITERAL | words // <uint32_t> size
        word[0] = LITERAL | (self.lists.count + self.root)
        self.push(&self.lists, &count, 1)
        self.push(&self.lists, self.stack.at + base, words)
        self.stack.count = base
        return 1

    cdef void clear(self, Field* field, uint32_t struct_at) noexcept:
        cdef int i
        if field.action == OBJECT:
            for i in range(field.inner.count):
                self.clear(&field.inner.fields[i], struct_at)
        if field.action == VERSION:
            self.version = NULL
            self.version_length = 0
        if field.action == FIRST:
            for i in range(field.inner.copied):
                self.stack.at[struct_at + field.word + i] = ABSENT
        elif field.word != NO_WORD:
            self.stack.at[struct_at + field.word] = ABSENT
