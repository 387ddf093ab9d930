"""Decodes JSON from the API server: list bodies and watch streams, cut anywhere, into the store.

    chunk -> value or line (its end by _scan.h) -> record (_parse) -> store, or side buffer of a later list

Memory is the largest single object: decoding is in place, and only a value that straddles a chunk is copied.
"""
import cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcmp, memcpy

import orjson

from .errors import DecodeError

from ._core cimport Record, Store, Symbols
from ._fields cimport ABSENT, EMPTY, META_NAME, META_NAMESPACE, Schema, kind_number, schema_of, schema_of_event, schema_of_metadata
from ._parse cimport Parser
from ._scan cimport scan_reserve, scan_start

cdef enum:
    FIRST_COPY = 16384      # bytes copied at a time to complete a value that straddles chunks; doubled each time

# Where the next byte stands. A list body is read byte by byte outside its items; a watch by lines.
cdef enum Place:
    IDLE
    BEFORE_BODY, FIRST_KEY, BEFORE_KEY, AFTER_KEY, BEFORE_VALUE, AFTER_VALUE, FIRST_ITEM, BEFORE_ITEM, AFTER_ITEM, AFTER_BODY
    IN_KEY, IN_STRING, IN_SCALAR, IN_VALUE, IN_ITEM
    IN_LINE

# by kind, what the API calls it
cdef tuple LIST_KINDS = ("Node", "Pod", "Service", "Endpoints", "EndpointSlice", "Ingress", "Namespace", "ReplicaSet", "Job")


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class Decoder:
    """Reads what one URL watcher receives, and owns that watcher's part of the store.

    A list: `begin_list`, `feed` each chunk, `end_page`; with a continue token `begin_page` and again; then `apply_list` until it
    returns False. The first list goes into the store as it comes; a later one into a side buffer that `apply_list` brings in.
    A watch: `begin_watch`, `feed` each chunk, `end_watch`. Bad objects are skipped and told by `take_errors`.
    """

    cdef readonly Store store
    cdef readonly str kind
    cdef int number             # of the kind
    cdef int watcher            # whose records these are
    cdef size_t limit
    cdef Parser parser
    cdef Schema* schema
    cdef Place place
    cdef uint8_t* carry         # the value or line that straddles chunks; in AFTER_KEY and after, the key
    cdef size_t carried, capacity
    cdef size_t base            # bytes of the body before this chunk
    cdef bint escaped           # the last byte of a key or string was a backslash
    cdef bytes key              # of the list body, whose value comes next
    cdef bytes metadata         # of the list body
    cdef bytes list_kind        # what the body says that it is; empty if it does not
    cdef bint has_items
    cdef uint32_t mark          # of this list; records that carry it have been seen by it
    cdef bint direct            # this list goes into the store as it comes
    cdef bint used              # something has been put into the store, or tried to
    cdef bint sweeps            # this list has to look for what is gone
    cdef bint keep_all          # an object of this list could not be named, so nothing is known to be gone
    cdef Record** staged
    cdef size_t staged_count, staged_capacity, staged_done
    cdef uint32_t swept         # slots that removal has passed
    cdef long added, updated, removed
    cdef long lines
    cdef list errors, statuses
    cdef readonly bint listed
    cdef readonly bint rewound
    cdef readonly long unknown_events
    cdef readonly long long blocks_scanned      # of 64 bytes, by the kernel
    cdef public str resource_version

    def __cinit__(self, Store store not None, str kind not None, *, size_t limit=64 << 20, str kernel=""):
        self.store = store
        self.kind = kind
        self.number = kind_number(kind)
        self.schema = schema_of(self.number)
        self.watcher = store.watchers
        store.watchers += 1
        self.limit = limit
        self.parser = Parser(store.symbols, kernel)
        self.errors = []
        self.statuses = []
        self.resource_version = ""
        self.place = IDLE

    def __dealloc__(self):
        self.drop_staged()
        free(self.staged)
        free(self.carry)

    @property
    def list_counts(self) -> tuple[int, int, int]:
        """Objects added, known already, and removed, by the list in progress or the last one."""
        return self.added, self.updated, self.removed

    def begin_list(self) -> None:
        """A new list, from its first page."""
        self.drop_staged()
        self.mark += 1
        self.direct = not self.listed
        self.sweeps = self.used
        self.used = True
        self.keep_all = False
        self.swept = 1
        self.added = self.updated = self.removed = 0
        self.begin_page()

    def begin_page(self) -> None:
        """The next page of the same list."""
        self.metadata = self.list_kind = b""
        self.has_items = False
        self.begin(BEFORE_BODY)

    def begin_watch(self) -> None:
        """A new watch stream."""
        self.lines = 0
        self.rewound = False
        self.used = True
        self.begin(IN_LINE)

    cdef void begin(self, Place place):
        self.place = place
        self.carried = 0
        self.base = 0
        self.escaped = False

    def feed(self, chunk) -> int:
        """Decodes the next bytes; the number of items or lines that ended in them, bad ones and bookmarks too.

        DecodeError if a list's items cannot be told apart any more, or an object or line is above the limit.
        """
        cdef Py_buffer view
        cdef long done
        if self.place == IDLE:
            raise RuntimeError("feed before begin_list, begin_page or begin_watch")
        PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
        try:
            if self.place == IN_LINE:
                done = self.feed_lines(<const uint8_t*> view.buf, <size_t> view.len)
            else:
                done = self.feed_body(<const uint8_t*> view.buf, <size_t> view.len)
            self.base += <size_t> view.len
        except BaseException:
            # what would come next cannot be told apart
            self.place = IDLE
            self.carried = 0
            raise
        finally:
            PyBuffer_Release(&view)
        return done

    def end_page(self) -> tuple[str, str]:
        """The list's resource version and continue token, "" where it has none; DecodeError if the body is not whole."""
        if self.place != AFTER_BODY:
            raise DecodeError("the list ends before its last bracket", self.base)
        self.place = IDLE
        self.check_kind()
        # some servers leave an empty array out, but they say which list it is
        if not self.list_kind and not self.has_items:
            raise DecodeError("expected a list, and found no items", self.base)
        found = {}
        if self.metadata:
            try:
                found = orjson.loads(self.metadata)
            except orjson.JSONDecodeError as error:
                raise DecodeError(f"the list's metadata is not valid: {error}", self.base) from None
        version = found.get("resourceVersion")
        token = found.get("continue")
        if not isinstance(version, str | None) or not isinstance(token, str | None):
            raise DecodeError("the list's resourceVersion or continue is no string", self.base)
        if version:
            self.resource_version = version
        return version or "", token or ""

    cdef int check_kind(self) except -1:
        """A Status, or a list of other objects, must not be taken for an empty list of these; others may hold anything."""
        expected = f"{LIST_KINDS[self.number]}List"
        if self.list_kind and self.list_kind not in (b"List", b"PartialObjectMetadataList", expected.encode()):
            raise DecodeError(f"expected a {expected}, not a {self.list_kind.decode('utf-8', 'replace')}", self.base)
        return 0

    def apply_list(self, Py_ssize_t budget=2000) -> bool:
        """After the last page: brings about `budget` changes of the list into the store; True: call again."""
        cdef Record* record
        cdef uint32_t slot
        cdef uint32_t end
        while self.staged_done < self.staged_count and budget > 0:
            record = self.staged[self.staged_done]
            self.staged_done += 1
            self.put(record)
            budget -= 1
        if self.staged_done < self.staged_count:
            return True
        if self.sweeps and not self.keep_all:
            end = self.store.slot_top
            for slot in range(self.swept, end):
                self.swept = slot + 1
                record = self.store.slot(slot).record
                if record != NULL and record.kind == self.number and record.watcher == self.watcher and record.mark != self.mark:
                    self.store.remove(slot)
                    self.removed += 1
                    budget -= 9
                budget -= 1 if slot & 7 == 0 else 0
                if budget <= 0 and slot + 1 < end:
                    return True
        self.listed = True
        self.staged_count = self.staged_done = 0
        return False

    def abort_list(self) -> None:
        """Gives up the list in progress: what the side buffer holds is forgotten."""
        self.drop_staged()
        self.place = IDLE

    def end_watch(self) -> int:
        """The stream has ended: a last line that is whole is decoded, half a line forgotten. Lines of this watch."""
        if self.place == IN_LINE and self.carried:
            self.line(self.carry, self.carried, self.base - self.carried, True)
        self.carried = 0
        self.place = IDLE
        return self.lines

    def take_errors(self) -> list:
        """Objects and lines that were skipped since the last call: (namespace/name or None, DecodeError)."""
        taken = self.errors
        self.errors = []
        return taken

    def take_statuses(self) -> list[bytes]:
        """Objects of ERROR events since the last call, as JSON."""
        taken = self.statuses
        self.statuses = []
        return taken

    def load(self, bytes body not None) -> None:
        """An object from a direct GET, unless its watch has delivered it meanwhile; DecodeError if it is not valid."""
        cdef Parser busy = self.parser
        cdef Parser parser = Parser(self.store.symbols)
        self.used = True
        # the parser of the list or watch may be in the middle of an object
        self.parser = parser
        try:
            self.read_whole(body)
        finally:
            self.parser = busy
        cdef uint32_t slot = self.store.find(self.number, parser.stack.at[META_NAMESPACE], parser.stack.at[META_NAME])
        if slot == 0 or self.store.slot(slot).record == NULL:
            self.put(self.store.make_record(self.number, self.watcher, self.mark, parser.stack.at, parser.stack.count))

    cdef int read_whole(self, bytes body) except -1:
        """The one object that a body is, read; DecodeError if it is not valid."""
        cdef Parser parser = self.parser
        cdef size_t end = self.lex(body, len(body))
        if not end:
            raise DecodeError("an object without end", len(body))
        if body[end:].strip(b" \t\r\n"):
            raise DecodeError("bytes after the object", end)
        if not parser.read(body, 0, end, self.schema) or not self.has_name():
            raise DecodeError((parser.why or b"metadata.name is missing").decode(), parser.at)
        return 0

    # ---- list bodies ----

    cdef long feed_body(self, const uint8_t* chunk, size_t length) except -1:
        cdef size_t i = 0
        cdef size_t taken
        cdef long done = 0
        cdef uint8_t byte
        while i < length:
            if self.place == IN_ITEM or self.place == IN_VALUE:
                taken = self.complete(chunk, i, length)
                done += self.place == AFTER_ITEM
                i += taken
                continue
            byte = chunk[i]
            if self.place == IN_KEY or self.place == IN_STRING:
                i += 1
                if self.escaped:
                    self.escaped = False
                elif byte == b"\\":
                    self.escaped = True
                elif byte == b'"':
                    self.end_string()
                    continue
                self.keep(&byte, 1)
                continue
            if self.place == IN_SCALAR:
                if byte in b",}] \t\r\n":
                    self.end_scalar(i)
                else:
                    self.keep(&byte, 1)
                    i += 1
                    continue
            if byte in b" \t\r\n":
                i += 1
                continue
            if self.place == BEFORE_VALUE and byte == b"[" and self.key == b"items":
                self.check_kind()
                self.place = FIRST_ITEM
                i += 1
                continue
            if byte in b"{[" and (self.place == FIRST_ITEM or self.place == BEFORE_ITEM or self.is_skipped(byte)):
                self.place = IN_VALUE if self.place == BEFORE_VALUE else IN_ITEM
                taken = self.start(chunk, i, length)
                done += self.place == AFTER_ITEM
                i += taken
                continue
            self.step(byte, i)
            i += 1
        return done

    cdef int step(self, uint8_t byte, size_t i) except -1:
        """One byte between the values of a list body."""
        if self.place == BEFORE_BODY and byte == b"{":
            self.place = FIRST_KEY
        elif (self.place == FIRST_KEY or self.place == BEFORE_KEY) and byte == b'"':
            self.place = IN_KEY
            self.carried = 0
        elif self.place == FIRST_KEY and byte == b"}":
            self.place = AFTER_BODY
        elif self.place == AFTER_KEY and byte == b":":
            self.place = BEFORE_VALUE
        elif self.place == BEFORE_VALUE and not self.is_skipped(byte) and byte != b"n":
            raise DecodeError(f"the list's {self.key.decode()} has a wrong type", self.base + i)
        elif self.place == BEFORE_VALUE and byte == b'"':
            self.place = IN_STRING
            self.carried = 0
        elif self.place == BEFORE_VALUE and byte in b"-0123456789tfn":
            self.place = IN_SCALAR
            self.carried = 0
            self.keep(&byte, 1)
        elif self.place == AFTER_VALUE and byte == b",":
            self.place = BEFORE_KEY
        elif self.place == AFTER_VALUE and byte == b"}":
            self.place = AFTER_BODY
        elif self.place == AFTER_ITEM and byte == b",":
            self.place = BEFORE_ITEM
        elif (self.place == AFTER_ITEM or self.place == FIRST_ITEM) and byte == b"]":
            self.place = AFTER_VALUE
        elif self.place == FIRST_ITEM or self.place == BEFORE_ITEM:
            raise DecodeError("expected an object in items", self.base + i)
        elif self.place == AFTER_BODY:
            raise DecodeError("bytes after the list", self.base + i)
        else:
            raise DecodeError("the list is not valid JSON", self.base + i)
        return 0

    cdef bint is_skipped(self, uint8_t byte) noexcept:
        """Whether a value that begins so may follow the key: of `items` and `metadata` the type matters."""
        return self.place == BEFORE_VALUE and self.key != b"items" and (self.key != b"metadata" or byte == b"{")

    cdef int end_scalar(self, size_t i) except -1:
        if (self.key == b"items" or self.key == b"metadata") and not is_word(self.carry, self.carried, b"null", 4):
            raise DecodeError(f"the list's {self.key.decode()} has a wrong type", self.base + i)
        self.place = AFTER_VALUE
        return 0

    cdef int end_string(self) except -1:
        if self.place == IN_STRING:
            self.place = AFTER_VALUE
            if self.key == b"kind":
                self.list_kind = PyBytes_FromStringAndSize(<char*> self.carry, self.carried)
            return 0
        self.place = AFTER_KEY
        self.key = PyBytes_FromStringAndSize(<char*> self.carry, self.carried)
        if b"\\" in self.key:
            try:
                self.key = orjson.loads(b'"' + self.key + b'"').encode()
            except orjson.JSONDecodeError:
                raise DecodeError("a key of the list is not valid", self.base) from None
        if self.key == b"metadata":
            # the last of equal keys replaces the earlier one
            self.metadata = b""
        elif self.key == b"items":
            self.has_items = True
        return 0

    cdef size_t start(self, const uint8_t* chunk, size_t i, size_t length) except 0:
        """A bracketed value that begins at `i`: handled in place if it ends in this chunk, else carried over."""
        cdef size_t end
        scan_start(&self.parser.scan)
        end = self.lex_more(chunk + i, length - i)
        if end:
            self.end_value(chunk + i, end, self.base + i)
            return end
        self.carried = 0
        self.keep(chunk + i, length - i)
        return length - i

    cdef size_t complete(self, const uint8_t* chunk, size_t i, size_t length) except 0:
        """More of a value that was carried over; the number of bytes taken."""
        cdef size_t before = self.carried
        cdef size_t end
        cdef size_t portion = min(length - i, <size_t> FIRST_COPY)
        cdef size_t taken = 0
        while True:
            self.keep(chunk + i + taken, portion)
            taken += portion
            end = self.lex_more(self.carry, self.carried)
            if end:
                taken = end - before
                self.end_value(self.carry, end, self.base + i - before)
                return taken
            if i + taken == length:
                return taken
            portion = min(length - i - taken, portion * 2)

    cdef size_t lex(self, const uint8_t* at, size_t length) except? 0:
        """Masks of a value from its beginning; where it ends, or 0."""
        scan_start(&self.parser.scan)
        return self.lex_more(at, length)

    cdef size_t lex_more(self, const uint8_t* at, size_t length) except? 0:
        cdef size_t end
        cdef size_t before = self.parser.scan.blocks
        if not scan_reserve(&self.parser.scan, length):
            raise MemoryError
        end = self.parser.kernel.lex(&self.parser.scan, at, length)
        self.blocks_scanned += self.parser.scan.blocks - before + (end == 0)   # what is left of a block is done again
        if (end if end else length) > self.limit:
            raise DecodeError(f"an object above {self.limit} bytes", self.base)
        return end

    cdef int keep(self, const uint8_t* at, size_t length) except -1:
        cdef uint8_t* grown
        if self.carried + length > self.limit and self.place != IN_ITEM and self.place != IN_VALUE:
            raise DecodeError(f"a line or string above {self.limit} bytes", self.base)
        if self.carried + length > self.capacity:
            self.capacity = (self.carried + length) * 2
            grown = <uint8_t*> realloc(self.carry, self.capacity)
            if grown == NULL:
                raise MemoryError
            self.carry = grown
        memcpy(self.carry + self.carried, at, length)
        self.carried += length
        return 0

    cdef int end_value(self, const uint8_t* at, size_t end, size_t offset) except -1:
        """A bracketed value of the list body is whole."""
        if self.place == IN_VALUE:
            self.place = AFTER_VALUE
            if self.key == b"metadata":
                self.metadata = PyBytes_FromStringAndSize(<const char*> at, end)
            return 0
        self.place = AFTER_ITEM
        if not self.parser.read(at, 0, end, self.schema) or not self.has_name():
            self.bad_item(at, end, offset)
            return 0
        self.list_item(self.parser.stack.at, self.parser.stack.count)
        return 0

    cdef int list_item(self, const uint32_t* words, uint32_t count) except -1:
        cdef uint32_t slot = self.store.find(self.number, words[META_NAMESPACE], words[META_NAME])
        cdef Record* known = self.store.slot(slot).record if slot else NULL
        cdef bint again
        if known != NULL:
            # of an object that is listed twice the last one counts, also if it is as the store has it
            again = known.mark == self.mark
            known.mark = self.mark
            known.watcher = <unsigned short> self.watcher
            self.updated += 1
            self.store.updated_of[self.number] += 1
            if not again and self.store.is_same(slot, words, count):
                return 0
        else:
            self.added += 1
            self.store.added_of[self.number] += 1
        cdef Record* record = self.store.make_record(self.number, self.watcher, self.mark, words, count)
        if self.direct:
            self.store.put(record)
        else:
            self.stage(record)
        return 0

    cdef int bad_item(self, const uint8_t* at, size_t end, size_t offset) except -1:
        """An item that is skipped: the object it was keeps its record."""
        cdef Parser parser = self.parser
        cdef uint32_t slot
        error = DecodeError((parser.why or b"metadata.name is missing").decode(), offset + parser.at)
        key = self.key_of(at, 0, end)
        self.errors.append((key, error))
        if key is None:
            self.keep_all = True
            return 0
        slot = self.store.find(self.number, parser.stack.at[META_NAMESPACE], parser.stack.at[META_NAME])
        if slot and self.store.slot(slot).record != NULL:
            self.store.slot(slot).record.mark = self.mark
        return 0

    cdef object key_of(self, const uint8_t* item, size_t at, size_t end):
        """namespace/name of an object of which only the metadata is read, or None."""
        cdef Symbols symbols = self.store.symbols
        cdef Parser parser = self.parser
        if not parser.read(item, at, end, schema_of_metadata()) or not self.has_name():
            return None
        name = symbols.string(parser.stack.at[META_NAME])
        namespace = parser.stack.at[META_NAMESPACE]
        return f"{symbols.string(namespace)}/{name}" if namespace else name

    cdef bint has_name(self) noexcept:
        """Whether the object just read has a name; an empty namespace is no namespace."""
        if self.parser.stack.at[META_NAMESPACE] == EMPTY:
            self.parser.stack.at[META_NAMESPACE] = ABSENT
        return self.parser.stack.at[META_NAME] > EMPTY

    cdef int put(self, Record* record) except -1:
        self.store.put(record)
        return 0

    cdef int stage(self, Record* record) except -1:
        cdef Record** grown
        if self.staged_count == self.staged_capacity:
            self.staged_capacity = self.staged_capacity * 2 if self.staged_capacity else 256
            grown = <Record**> realloc(self.staged, self.staged_capacity * sizeof(Record*))
            if grown == NULL:
                raise MemoryError
            self.staged = grown
        self.staged[self.staged_count] = record
        self.staged_count += 1
        return 0

    cdef void drop_staged(self) noexcept:
        cdef size_t i
        for i in range(self.staged_done, self.staged_count):
            self.store.free_record(self.staged[i])
        self.staged_count = self.staged_done = 0

    # ---- watch streams ----

    cdef long feed_lines(self, const uint8_t* chunk, size_t length) except -1:
        cdef size_t i = 0
        cdef size_t stop
        cdef long done = 0
        cdef const uint8_t* newline
        while i < length:
            newline = <const uint8_t*> memchr(chunk + i, b"\n", length - i)
            if newline == NULL:
                self.keep(chunk + i, length - i)
                break
            stop = newline - chunk
            if self.carried:
                self.keep(chunk + i, stop - i)
                done += self.line(self.carry, self.carried, self.base + stop - self.carried, False)
                self.carried = 0
            else:
                done += self.line(chunk + i, stop - i, self.base + i, False)
            i = stop + 1
        return done

    cdef int line(self, const uint8_t* at, size_t length, size_t offset, bint last) except -1:
        """One line of a watch: 1, or 0 for an empty one and for half of one at the end."""
        cdef size_t end
        while length and at[0] in b" \t\r":
            at += 1
            length -= 1
            offset += 1
        while length and at[length - 1] in b" \t\r":
            length -= 1
        if length == 0:
            return 0
        if length > self.limit:
            raise DecodeError(f"a line above {self.limit} bytes", offset)
        end = self.lex(at, length) if at[0] == b"{" else 0
        if end != length:
            if last:
                return 0
            self.lines += 1
            self.parser.why = b"not one JSON object in a line"
            self.errors.append((None, DecodeError("not one JSON object in a line", offset)))
            return 1
        self.lines += 1
        self.event(at, length, offset)
        return 1

    cdef int event(self, const uint8_t* at, size_t length, size_t offset) except -1:
        cdef Parser parser = self.parser
        cdef size_t type_at = 0
        cdef size_t type_end = 0
        cdef size_t object_at = 0
        cdef size_t object_end = 0
        cdef int found
        cdef int escaped = 0
        cdef uint8_t byte
        parser.begin(at, 1, length)
        while parser.why == NULL:
            found = parser.key(schema_of_event())
            if found == -2:
                break
            parser.peek()
            if found == 0:
                type_at = parser.at
            elif found == 1:
                object_at = parser.at
            if not parser.skip():
                break
            if found == 0:
                type_end = parser.at
            elif found == 1:
                object_end = parser.at
            byte = parser.peek()
            parser.at += 1
            if byte == b"}":
                break
            if byte != b",":
                parser.fail(b"expected , or }", parser.at - 1)
        if parser.why == NULL and (object_end == 0 or at[object_at] != b"{" or at[type_at] != b'"'):
            parser.fail(b"an event without type or object", 0)
        if parser.why == NULL and memchr(at + type_at, b"\\", type_end - type_at) != NULL:
            parser.unescaped_count = 0
            escaped = parser.unescape(type_at + 1)
        if parser.why != NULL:
            self.errors.append((None, DecodeError(parser.why.decode(), offset + parser.at)))
            return 0
        cdef const uint8_t* kind = <const uint8_t*> parser.unescaped if escaped else at + type_at + 1
        cdef size_t size = parser.unescaped_count if escaped else type_end - type_at - 2
        if is_word(kind, size, b"ADDED", 5) or is_word(kind, size, b"MODIFIED", 8):
            self.upsert(at, object_at, object_end, offset)
        elif is_word(kind, size, b"DELETED", 7):
            self.deleted(at, object_at, object_end, offset)
        elif is_word(kind, size, b"BOOKMARK", 8):
            if parser.read(at, object_at, object_end, schema_of_metadata()):
                self.advance(True)
            else:
                self.errors.append((None, DecodeError(parser.why.decode(), offset + parser.at)))
        elif is_word(kind, size, b"ERROR", 5):
            self.statuses.append(PyBytes_FromStringAndSize(<const char*> at + object_at, object_end - object_at))
        else:
            self.unknown_events += 1
        return 0

    cdef int upsert(self, const uint8_t* at, size_t start, size_t end, size_t offset) except -1:
        cdef Parser parser = self.parser
        cdef uint32_t slot
        if not parser.read(at, start, end, self.schema) or not self.has_name():
            return self.bad_event(at, start, end, offset)
        self.advance(False)
        slot = self.store.find(self.number, parser.stack.at[META_NAMESPACE], parser.stack.at[META_NAME])
        if slot == 0 or self.store.slot(slot).record == NULL:
            self.store.added_of[self.number] += 1
        elif self.store.is_same(slot, parser.stack.at, parser.stack.count):
            # a field that labels do not use has changed
            self.store.slot(slot).record.watcher = <unsigned short> self.watcher
            self.store.slot(slot).record.mark = self.mark
            return 0
        else:
            self.store.updated_of[self.number] += 1
        return self.put(self.store.make_record(self.number, self.watcher, self.mark, parser.stack.at, parser.stack.count))

    cdef int deleted(self, const uint8_t* at, size_t start, size_t end, size_t offset) except -1:
        cdef Parser parser = self.parser
        cdef uint32_t slot
        if not parser.read(at, start, end, schema_of_metadata()) or not self.has_name():
            return self.bad_event(at, start, end, offset)
        self.advance(False)
        slot = self.store.find(self.number, parser.stack.at[META_NAMESPACE], parser.stack.at[META_NAME])
        if slot:
            self.store.remove(slot)
        return 0

    cdef int bad_event(self, const uint8_t* at, size_t start, size_t end, size_t offset) except -1:
        """An event whose object is skipped: its version still counts, where it can be read."""
        error = DecodeError((self.parser.why or b"metadata.name is missing").decode(), offset + self.parser.at)
        key = self.key_of(at, start, end)
        if self.parser.why == NULL:
            self.advance(False)
        self.errors.append((key, error))
        return 0

    cdef int advance(self, bint bookmark) except -1:
        """Moves the newest version on by that of the object just read; never back, where both are numbers."""
        cdef Parser parser = self.parser
        cdef const char* at
        cdef int order
        if parser.version_length == 0:
            return 0
        at = parser.version if parser.version != NULL else parser.unescaped + parser.version_offset
        version = PyBytes_FromStringAndSize(at, parser.version_length).decode("utf-8", "replace")
        if version != self.resource_version:
            order = compare_versions(version, self.resource_version)
            if order >= 0:
                self.resource_version = version
            elif bookmark:
                # the server's history has gone back: only a list tells what is true now
                self.rewound = True
        return 0


cdef bint is_word(const uint8_t* at, size_t length, const char* word, size_t size) noexcept:
    return length == size and memcmp(at, word, size) == 0


cdef int compare_versions(str first, str second) except -2:
    """Order of two resource versions; 1 where one is no number, since then the newer one is the one that came last."""
    if not (first.isascii() and first.isdigit() and second.isascii() and second.isdigit()):
        return 1
    if len(first) != len(second):
        return -1 if len(first) < len(second) else 1
    return -1 if first < second else int(first > second)


def decode_object(str kind not None, bytes body not None) -> dict:
    """One object from a GET, as `Store.get` gives it; DecodeError if it is not valid."""
    cdef Decoder decoder = Decoder(Store(Symbols()), kind)
    decoder.read_whole(body)
    return decoder.store.mapping(decoder.schema, decoder.parser.stack.at, decoder.parser.stack.at)
