"""Targets as http_sd and file_sd have them: copied out of the engine, then sorted, counted and written without it.

    batches, Labels -> texts escaped once each, groups of numbers of texts -> order, digests -> bytes, a slice at a time

After `seal` nothing here refers to symbols, so all that follows may run on any thread, without the GIL.
"""
import cython

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memset

from ._batch cimport Batch, Row, Target
from ._bytes cimport hash_bytes
from ._core cimport Symbol, Symbols
from ._fields cimport EMPTY, kind_number
from ._labels cimport LabelShape, Labels, Layout, Shapes, shapes_of
from ._relabel cimport Relabeling

SYNTAXES = ("json", "yaml")

cdef enum:
    JSON, YAML
    SLICE_BYTES = 262144    # a quarter of a millisecond to write

cdef struct Text:           # a string as JSON and YAML both read it, quotes and all
    uint64_t where          # in the arena
    uint64_t hash
    uint32_t length

cdef struct Form:           # what is written of targets of one shape
    LabelShape* shape       # owned until `seal`
    uint32_t count
    int address             # place of the address among the values, or -1
    int path                # place of __metrics_path__, or -1
    uint32_t* places        # of the values that are written
    uint32_t* names         # their names: texts

cdef struct Group:          # one target
    uint32_t form
    uint32_t address        # a text
    uint64_t values         # where in `values`: a text for each name of the form, 0 where there is none
    uint64_t[2] digest
    uint32_t labels         # those that are written
    uint64_t length         # of the texts together


@cython.final
@cython.no_gc_clear         # freeing uses its references
cdef class Snapshot:
    """The targets of one export, as they were when they were added."""

    cdef Symbols symbols
    cdef Shapes shapes
    cdef object wanted
    cdef object split
    cdef bint sealed
    cdef uint32_t address_name, path_name
    cdef uint32_t* text_of          # by symbol: its text; 0: none yet
    cdef size_t text_of_capacity
    cdef dict forms_of              # shape's id -> form
    cdef Form* forms
    cdef uint32_t form_count, form_capacity
    cdef Text* texts
    cdef uint32_t text_count, text_capacity
    cdef char* arena
    cdef size_t arena_length, arena_capacity
    cdef Group* groups
    cdef size_t group_count, group_capacity
    cdef uint32_t* values
    cdef size_t value_count, value_capacity
    cdef size_t* slice_starts
    cdef size_t slice_count
    cdef readonly Py_ssize_t without_address

    def __cinit__(self, Symbols symbols not None, wanted=None, split=None):
        self.symbols = symbols
        self.shapes = shapes_of(symbols)
        self.wanted = wanted
        self.split = split
        self.forms_of = {}
        self.address_name = symbols.intern_str("__address__")
        self.path_name = symbols.intern_str("__metrics_path__")
        symbols.pins += 1       # bare ids are kept until `seal`
        self.text_count = 1     # text 0 is none

    def __dealloc__(self):
        cdef uint32_t i
        if self.symbols is not None and self.shapes is not None and not self.sealed:
            self.let_go()
        for i in range(self.form_count):
            free(self.forms[i].places)
            free(self.forms[i].names)
        free(self.forms)
        free(self.texts)
        free(self.arena)
        free(self.groups)
        free(self.values)
        free(self.slice_starts)

    def __len__(self):
        return self.group_count

    # ---- adding ----

    def add_batch(self, Batch batch not None, str role, int profile, Relabeling relabeling=None) -> None:
        """The batch's targets of this role and profile; with rules, those that they keep."""
        cdef size_t i
        cdef uint32_t j
        cdef Row* row
        cdef Target* target
        cdef int kind = kind_number(role)
        self.check_open()
        if batch.shapes is not self.shapes:
            raise ValueError("a batch of other symbols")
        for i in range(batch.row_count):
            row = &batch.rows[i]
            if row.kind != kind or row.profile != profile:
                continue
            for j in range(row.first, row.first + row.count):
                target = &batch.found[j]
                if relabeling is None or relabeling.survives(target.shape, batch.values + target.values):
                    self.add(target.shape, batch.values + target.values)

    def add_labels(self, Labels labels not None) -> None:
        """One target."""
        self.check_open()
        if labels.shapes is not self.shapes:
            raise ValueError("labels of other symbols")
        self.add(labels.shape, labels.ids)

    cdef int check_open(self) except -1:
        if self.sealed:
            raise ValueError("the snapshot is sealed")
        return 0

    cdef int add(self, LabelShape* shape, const uint32_t* ids) except -1:
        cdef uint32_t number = self.form_of(shape)
        cdef Form* form = &self.forms[number]
        cdef Group* group
        cdef uint32_t i, text
        if form.address < 0 or ids[form.address] <= EMPTY:
            self.without_address += 1
            return 0
        if self.split is not None and self.needs_splitting(form, ids):
            return self.add_split(shape, ids)
        self.room(form.count)
        group = &self.groups[self.group_count]
        group.form = number
        group.address = self.text(ids[form.address])
        group.values = self.value_count
        group.labels = 0
        group.length = self.texts[group.address].length
        for i in range(form.count):
            text = 0
            if ids[form.places[i]] > EMPTY:
                text = self.text(ids[form.places[i]])
                group.labels += 1
                group.length += self.texts[text].length + self.texts[form.names[i]].length
            self.values[self.value_count + i] = text
        self.value_count += form.count
        self.group_count += 1
        return 0

    cdef bint needs_splitting(self, Form* form, const uint32_t* ids) noexcept:
        """Whether the address holds more than an address, or the path a query."""
        cdef Symbol* symbol = self.symbols.at(ids[form.address])
        if memchr(symbol.text, b"/", symbol.length) != NULL or memchr(symbol.text, b"?", symbol.length) != NULL:
            return True
        if form.path < 0 or ids[form.path] <= EMPTY:
            return False
        symbol = self.symbols.at(ids[form.path])
        return memchr(symbol.text, b"?", symbol.length) != NULL

    cdef int add_split(self, LabelShape* shape, const uint32_t* ids) except -1:
        cdef uint32_t i
        cdef Layout* layout
        split = self.split
        given = {self.symbols.string(shape.names[i]): self.symbols.string(ids[i]) for i in range(shape.count)}
        labels = split(given)
        cdef uint32_t count = <uint32_t> len(labels)
        cdef uint32_t* names = <uint32_t*> malloc((3 * count + 1) * sizeof(uint32_t))
        if names == NULL:
            raise MemoryError
        try:
            for i, (name, value) in enumerate(labels.items()):
                names[i] = self.symbols.intern_str(name)
                names[count + i] = self.symbols.intern_str(value)
            layout = self.shapes.layout(names, count)
            for i in range(layout.shape.count):
                names[2 * count + i] = names[count + (layout.words + layout.count)[i]]
            self.split = None       # once is enough
            try:
                self.add(layout.shape, names + 2 * count)
            finally:
                self.split = split
        finally:
            free(names)
        return 0

    cdef uint32_t form_of(self, LabelShape* shape) except? 0xFFFFFFFF:
        cdef Form* grown
        cdef Form* form
        cdef uint32_t i
        cdef Symbol* name
        known = self.forms_of.get(shape.id)
        if known is not None:
            return known
        if self.form_count == self.form_capacity:
            self.form_capacity = self.form_capacity * 2 if self.form_capacity else 16
            grown = <Form*> realloc(self.forms, self.form_capacity * sizeof(Form))
            if grown == NULL:
                raise MemoryError
            self.forms = grown
        form = &self.forms[self.form_count]
        memset(form, 0, sizeof(Form))
        form.address = form.path = -1
        form.places = <uint32_t*> malloc((shape.count + 1) * sizeof(uint32_t))
        form.names = <uint32_t*> malloc((shape.count + 1) * sizeof(uint32_t))
        self.form_count += 1        # freed with the others from here on
        if form.places == NULL or form.names == NULL:
            raise MemoryError
        for i in range(shape.count):
            if shape.names[i] == self.address_name:
                form.address = <int> i
                continue
            if shape.names[i] == self.path_name:
                form.path = <int> i
            name = self.symbols.at(shape.names[i])
            if name.length == 0 or (self.wanted is not None and not self.wanted(self.symbols.string(shape.names[i]))):
                continue
            form.names[form.count] = self.text(shape.names[i])
            form.places[form.count] = i
            form.count += 1
        form.shape = shape
        shape.refs += 1             # so that its id is not given to another one
        self.forms_of[shape.id] = self.form_count - 1
        return self.form_count - 1

    cdef int room(self, uint32_t values) except -1:
        cdef Group* groups
        cdef uint32_t* grown
        if self.group_count == self.group_capacity:
            self.group_capacity = self.group_capacity * 2 if self.group_capacity else 64
            groups = <Group*> realloc(self.groups, self.group_capacity * sizeof(Group))
            if groups == NULL:
                raise MemoryError
            self.groups = groups
        if self.value_count + values > self.value_capacity:
            self.value_capacity = 2 * (self.value_count + values)
            grown = <uint32_t*> realloc(self.values, self.value_capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.values = grown
        return 0

    # ---- texts ----

    cdef inline uint32_t text(self, uint32_t id) except 0:
        """The text of a symbol, made once."""
        if id < self.text_of_capacity and self.text_of[id]:
            return self.text_of[id]
        return self.new_text(id)

    cdef uint32_t new_text(self, uint32_t id) except 0:
        cdef Symbol* symbol = self.symbols.at(id)
        cdef Text* texts
        cdef uint32_t* grown
        cdef char* arena
        cdef size_t most = <size_t> symbol.length * 6 + 2     # of a byte come six at most
        cdef Text* text
        if id >= self.text_of_capacity:
            grown = <uint32_t*> realloc(self.text_of, (2 * <size_t> id + 1024) * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.text_of = grown
            memset(grown + self.text_of_capacity, 0, (2 * <size_t> id + 1024 - self.text_of_capacity) * sizeof(uint32_t))
            self.text_of_capacity = 2 * <size_t> id + 1024
        if self.text_count >= self.text_capacity:
            self.text_capacity = self.text_capacity * 2 if self.text_capacity else 256
            texts = <Text*> realloc(self.texts, self.text_capacity * sizeof(Text))
            if texts == NULL:
                raise MemoryError
            self.texts = texts
        if self.arena_length + most > self.arena_capacity:
            arena = <char*> realloc(self.arena, (self.arena_length + most) * 3 // 2 + 4096)
            if arena == NULL:
                raise MemoryError
            self.arena = arena
            self.arena_capacity = (self.arena_length + most) * 3 // 2 + 4096
        text = &self.texts[self.text_count]
        text.where = self.arena_length
        text.length = <uint32_t> escape(<const uint8_t*> symbol.text, symbol.length, self.arena + self.arena_length)
        # without a seed: the same text has the same hash in every process
        text.hash = <uint64_t> hash_bytes(self.arena + text.where, text.length, 0) << 32 \
            | hash_bytes(self.arena + text.where, text.length, 0x9E3779B97F4A7C15u)
        self.arena_length += text.length
        self.text_of[id] = self.text_count
        self.text_count += 1
        return self.text_count - 1

    # ---- on any thread ----

    def seal(self) -> None:
        """Nothing is added any more, and nothing refers to the engine; to be called on its thread."""
        if not self.sealed:
            self.let_go()

    cdef int let_go(self) except -1:
        cdef uint32_t i
        self.sealed = True
        for i in range(self.form_count):
            if self.forms[i].shape != NULL:
                self.shapes.drop_shape(self.forms[i].shape)
                self.forms[i].shape = NULL
        self.symbols.pins -= 1
        free(self.text_of)
        self.text_of = NULL
        self.text_of_capacity = 0
        self.wanted = self.split = None
        self.forms_of = None
        return 0

    def arrange(self, bint distinct=False) -> bytes:
        """Sorts what was added, `distinct` leaves each target once; what it gives is equal just for equal targets. Without the GIL."""
        cdef Group* scratch
        cdef bint short
        if not self.sealed:
            raise ValueError("the snapshot is not sealed")
        with nogil:
            scratch = <Group*> malloc((self.group_count + 1) * sizeof(Group))
            if scratch != NULL:
                self.sort(scratch)
                free(scratch)
                if distinct:
                    self.leave_each_once()
                short = not self.cut()
            else:
                short = True
        if short:
            raise MemoryError
        digests = PyBytes_FromStringAndSize(NULL, 16 * self.group_count)
        cdef char* to = PyBytes_AS_STRING(digests)
        cdef size_t i
        with nogil:
            for i in range(self.group_count):
                self.digest(&self.groups[i])
                memcpy(to + 16 * i, self.groups[i].digest, 16)
        return digests

    cdef void sort(self, Group* scratch) noexcept nogil:
        """By merging."""
        cdef Group* source = self.groups
        cdef Group* merged = scratch
        cdef Group* swapped
        cdef size_t count = self.group_count
        cdef size_t width = 1
        cdef size_t start, first, middle, second, end, i
        while width < count:
            start = 0
            while start < count:
                first = start
                middle = second = min(start + width, count)
                end = min(start + 2 * width, count)
                for i in range(start, end):
                    if second == end or (first < middle and self.compare(&source[first], &source[second]) <= 0):
                        merged[i] = source[first]
                        first += 1
                    else:
                        merged[i] = source[second]
                        second += 1
                start = end
            swapped = source
            source = merged
            merged = swapped
            width *= 2
        if source != self.groups:
            memcpy(self.groups, source, count * sizeof(Group))

    cdef int compare(self, const Group* a, const Group* b) noexcept nogil:
        """By address, then by names and values in their order, as text."""
        cdef int order = self.compare_texts(a.address, b.address)
        cdef const Form* first = &self.forms[a.form]
        cdef const Form* second = &self.forms[b.form]
        cdef uint32_t i = 0
        cdef uint32_t j = 0
        if order:
            return order
        while True:
            while i < first.count and not self.values[a.values + i]:
                i += 1
            while j < second.count and not self.values[b.values + j]:
                j += 1
            if i == first.count or j == second.count:
                return (i < first.count) - (j < second.count)
            order = self.compare_texts(first.names[i], second.names[j])
            if order == 0:
                order = self.compare_texts(self.values[a.values + i], self.values[b.values + j])
            if order:
                return order
            i += 1
            j += 1

    cdef inline int compare_texts(self, uint32_t a, uint32_t b) noexcept nogil:
        cdef const Text* first = &self.texts[a]
        cdef const Text* second = &self.texts[b]
        cdef int order
        if a == b:
            return 0
        order = memcmp(self.arena + first.where, self.arena + second.where, min(first.length, second.length))
        return order if order else (first.length > second.length) - (first.length < second.length)

    cdef void leave_each_once(self) noexcept nogil:
        cdef size_t i
        cdef size_t kept = 0
        for i in range(self.group_count):
            if kept == 0 or self.compare(&self.groups[kept - 1], &self.groups[i]) != 0:
                self.groups[kept] = self.groups[i]
                kept += 1
        self.group_count = kept

    cdef void digest(self, Group* group) noexcept nogil:
        cdef const Form* form = &self.forms[group.form]
        cdef uint64_t a = self.texts[group.address].hash
        cdef uint64_t b = a ^ 0xE7037ED1A0B428DBu
        cdef uint64_t text
        cdef uint32_t i
        for i in range(form.count):
            if self.values[group.values + i]:
                text = self.texts[form.names[i]].hash * 0xA0761D6478BD642Fu + self.texts[self.values[group.values + i]].hash
                a = (a ^ text) * 0xD6E8FEB86659FD93u
                a ^= a >> 32
                b = (b + text) * 0x9E3779B97F4A7C15u
                b ^= b >> 29
        group.digest[0] = a
        group.digest[1] = b

    cdef bint cut(self) noexcept nogil:
        """Finds where slices begin; False if memory is short."""
        cdef size_t i
        cdef size_t length = 0
        cdef size_t capacity = 0
        cdef size_t* grown
        for i in range(self.group_count + 1):
            if i == 0 or i == self.group_count or length >= SLICE_BYTES:
                if self.slice_count + 2 > capacity:
                    capacity = 2 * capacity + 8
                    grown = <size_t*> realloc(self.slice_starts, capacity * sizeof(size_t))
                    if grown == NULL:
                        return False
                    self.slice_starts = grown
                self.slice_starts[self.slice_count] = i
                self.slice_count += 1
                length = 0
            if i < self.group_count:
                length += self.groups[i].length + 3 * self.groups[i].labels + 32
        if self.group_count == 0:
            self.slice_starts[1] = 0
            self.slice_count = 2
        self.slice_count -= 1       # the last start is the end
        return True

    @property
    def slices(self) -> int:
        """How many slices there are; known once it is arranged, and one or more then."""
        return self.slice_count

    def length(self, str syntax) -> int:
        """Bytes of all slices together."""
        cdef int written = SYNTAXES.index(syntax)
        cdef size_t i
        cdef size_t total = 0
        for i in range(self.slice_count):
            total += self.slice_length(i, written)
        return total

    def render(self, Py_ssize_t number, str syntax) -> bytes:
        """One slice: a list of `targets` and `labels` when all slices stand one after the other. Without the GIL."""
        cdef int written = SYNTAXES.index(syntax)
        if not 0 <= number < <Py_ssize_t> self.slice_count:
            raise IndexError(number)
        cdef size_t length = self.slice_length(number, written)
        made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> length)
        cdef char* to = PyBytes_AS_STRING(made)
        cdef char* end
        with nogil:
            end = self.write_slice(to, number, written)
        if end != to + length:
            raise AssertionError("a slice is not as long as it was counted")
        return made

    cdef size_t slice_length(self, size_t number, int written) noexcept nogil:
        cdef size_t i
        cdef size_t total = 0
        cdef size_t first = self.slice_starts[number]
        cdef size_t end = self.slice_starts[number + 1]
        cdef const Group* group
        if written == YAML:
            for i in range(first, end):
                group = &self.groups[i]
                # "- targets: [" A "]\n" and "  labels:\n" or "  labels: {}\n", and "    " N ": " V "\n" for each label
                total += 12 + 2 + (10 if group.labels else 13) + group.length + 7 * <size_t> group.labels
            return total if self.group_count else 3
        for i in range(first, end):
            group = &self.groups[i]
            # {"targets":[ A ],"labels":{ N : V , ... }} and what is between two of them
            total += 12 + 12 + 2 + group.length + 2 * <size_t> group.labels - (group.labels > 0) + (2 if i else 0)
        return total + (number == 0) + (2 if number == self.slice_count - 1 else 0)

    cdef char* write_slice(self, char* to, size_t number, int written) noexcept nogil:
        cdef size_t i
        if written == YAML:
            if self.group_count == 0:
                return copy(to, b"[]\n", 3)
            for i in range(self.slice_starts[number], self.slice_starts[number + 1]):
                to = self.write_yaml(to, &self.groups[i])
            return to
        if number == 0:
            to = copy(to, b"[", 1)
        for i in range(self.slice_starts[number], self.slice_starts[number + 1]):
            if i:
                to = copy(to, b",\n", 2)
            to = self.write_json(to, &self.groups[i])
        if number == self.slice_count - 1:
            to = copy(to, b"]\n", 2)
        return to

    cdef char* write_json(self, char* to, const Group* group) noexcept nogil:
        cdef const Form* form = &self.forms[group.form]
        cdef const uint32_t* values = self.values + group.values
        cdef uint32_t i
        cdef bint following = False
        to = copy(to, b'{"targets":[', 12)
        to = self.write_text(to, group.address)
        to = copy(to, b'],"labels":{', 12)
        for i in range(form.count):
            if values[i]:
                if following:
                    to = copy(to, b",", 1)
                to = self.write_text(to, form.names[i])
                to = copy(to, b":", 1)
                to = self.write_text(to, values[i])
                following = True
        return copy(to, b"}}", 2)

    cdef char* write_yaml(self, char* to, const Group* group) noexcept nogil:
        cdef const Form* form = &self.forms[group.form]
        cdef const uint32_t* values = self.values + group.values
        cdef uint32_t i
        to = copy(to, b"- targets: [", 12)
        to = self.write_text(to, group.address)
        to = copy(to, b"]\n", 2)
        if not group.labels:
            return copy(to, b"  labels: {}\n", 13)
        to = copy(to, b"  labels:\n", 10)
        for i in range(form.count):
            if values[i]:
                to = copy(to, b"    ", 4)
                to = self.write_text(to, form.names[i])
                to = copy(to, b": ", 2)
                to = self.write_text(to, values[i])
                to = copy(to, b"\n", 1)
        return to

    cdef inline char* write_text(self, char* to, uint32_t text) noexcept nogil:
        return copy(to, self.arena + self.texts[text].where, self.texts[text].length)


cdef inline char* copy(char* to, const char* text, size_t length) noexcept nogil:
    memcpy(to, text, length)
    return to + length


cdef size_t escape(const uint8_t* text, size_t length, char* to) noexcept nogil:
    """A string as JSON and YAML read it alike; the bytes written.

    Written as \\uXXXX: control characters, U+007F to U+009F, U+2028, U+2029, U+FEFF, U+FFFE and U+FFFF, which YAML takes for line ends or
    refuses, and the percent sign of `%{`, which vmagent would expand. All else stays as it is, beyond the BMP too: YAML has no surrogates.
    """
    cdef char* start = to
    cdef size_t i = 0
    cdef uint8_t byte
    cdef uint32_t code
    cdef size_t wide
    to[0] = b'"'
    to += 1
    while i < length:
        byte = text[i]
        code = 0xFFFFFFFFu
        wide = 1
        if byte < 0x20 or byte == 0x7F:
            code = byte
        elif byte == b'"' or byte == b"\\":
            to[0] = b"\\"
            to += 1
        elif byte == b"%" and i + 1 < length and text[i + 1] == b"{":
            code = byte
        elif byte == 0xC2 and i + 1 < length and text[i + 1] < 0xA0:
            code = text[i + 1]
            wide = 2
        elif (byte == 0xE2 or byte == 0xEF) and i + 2 < length:
            code = <uint32_t> (byte & 0x0F) << 12 | <uint32_t> (text[i + 1] & 0x3F) << 6 | (text[i + 2] & 0x3F)
            wide = 3
            if code != 0x2028 and code != 0x2029 and code != 0xFEFF and code != 0xFFFE and code != 0xFFFF:
                to = copy(to, <const char*> text + i, 3)
                i += 3
                continue
        if code == 0xFFFFFFFFu:
            to[0] = <char> byte
            to += 1
        else:
            to = copy(to, b"\\u", 2)
            to[0] = DIGITS[code >> 12]
            to[1] = DIGITS[code >> 8 & 15]
            to[2] = DIGITS[code >> 4 & 15]
            to[3] = DIGITS[code & 15]
            to += 4
        i += wide
    to[0] = b'"'
    return to + 1 - start


cdef const char* DIGITS = b"0123456789abcdef"
