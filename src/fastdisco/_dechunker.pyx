"""Chunked transfer coding, taken off in place; see the stub."""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memmove

cdef enum:
    DIGITS = 15  # of a size: no sum with one overflows
    SMALLEST = 64  # a size line that is not complete leaves room for more
    MOVED = 64 << 10  # a larger chunk is given alone: moving it would cost more than one more turn of its reader


@cython.final
cdef class Dechunker:
    """Received bytes in, bytes of the body out."""
    cdef:
        readonly bint stuck
        bytearray buffer
        object view
        uint8_t* at
        size_t size
        size_t start, end  # what was received and not yet taken
        size_t left  # data of the chunk that `start` is in; 0: a size line starts there

    def __cinit__(self, size_t size, bytes received=b"") -> None:
        self.size = max(size, <size_t> len(received) + SMALLEST)
        self.buffer = PyByteArray_FromStringAndSize(NULL, self.size)
        self.view = memoryview(self.buffer)
        self.at = <uint8_t*> PyByteArray_AS_STRING(self.buffer)
        self.end = <size_t> len(received)
        memcpy(self.at, <const char*> received, self.end)

    def room(self) -> memoryview:
        """Where to put what is received next; never empty after `received` was True or `take` gave None."""
        return self.view[self.end:]

    def received(self, size_t count) -> bool:
        """So many bytes are there now; whether there is room for more."""
        self.end += count
        return self.end < self.size

    def take(self):
        """Bytes of the body, of as many chunks as are there; None if there are none, or if this is `stuck`."""
        cdef size_t first = 0, last = 0, line, there, count
        cdef bint whole
        while not self.stuck:
            if self.left == 0:
                line = self.size_line()
                if line == 0:
                    break
                self.start += line
            there = self.end - self.start
            whole = there >= self.left + 2 and self.at[self.start + self.left] == c"\r" and self.at[self.start + self.left + 1] == c"\n"
            # The last byte of a chunk waits for what has to follow it: so `rest` can always tell where this stands.
            count = self.left if whole else min(there, self.left - 1)
            if last and count > MOVED:
                break
            self.stuck = not whole and there >= self.left + 2
            if count == 0:
                break
            if last:
                memmove(self.at + last, self.at + self.start, count)
            else:
                first = last = self.start
            last += count
            self.start += count + 2 if whole else count
            self.left -= count
            if not whole:
                break
        if last:
            return self.view[first:last]
        self.close_up()
        return None

    def rest(self) -> bytes:
        """What was not taken, as a parser must see it that has seen no chunk begin."""
        cdef bytes raw = bytes(self.view[self.start:self.end])
        return b"%x\r\n%b" % (self.left, raw) if self.left else raw

    cdef size_t size_line(self) noexcept:
        """The length of a line of digits alone, `left` is then their number; 0: that is not there yet, or this is `stuck`."""
        cdef size_t at = self.start, number = 0
        cdef int digit
        while at < self.end and at - self.start < DIGITS:
            digit = value_of(self.at[at])
            if digit < 0:
                break
            number = number << 4 | <size_t> digit
            at += 1
        if at < self.end and self.at[at] == c"\r" and at > self.start and number:
            if at + 1 == self.end:
                return 0
            if self.at[at + 1] == c"\n":
                self.left = number
                return at + 2 - self.start
        self.stuck = at < self.end
        return 0

    cdef void close_up(self) noexcept:
        """What is left, a size line or the end of a chunk, goes to the start of the buffer."""
        if self.start and not self.stuck:
            memmove(self.at, self.at + self.start, self.end - self.start)
            self.end -= self.start
            self.start = 0


cdef inline int value_of(uint8_t digit) noexcept:
    if c"0" <= digit <= c"9":
        return digit - c"0"
    digit |= 0x20
    if c"a" <= digit <= c"f":
        return digit - c"a" + 10
    return -1
