"""Runs PTX, the code that nvcc generates for NVIDIA's GPUs, on a CPU. PTX is described in NVIDIA's "PTX ISA".

A Module is the PTX of one source. A Gpu has memory and launches kernels. The emulator computes with all threads of many blocks at
once. It stops with a Fault, which names the kernel, the instruction and the thread, if a thread

- accesses memory outside of an array, writes to an input, or accesses an address that is not a multiple of the access's size;
- uses a word that another thread has written, or overwrites a word that another thread has used, without a barrier in between;
- ends, or waits at another barrier, while other threads of its block wait at a barrier; or shuffles with a thread that does not;
- waits for a number in memory that does not come;
- reads by ld.global.nc, which may return old values, what the same launch writes;
- executes an instruction that the emulator does not know.

Outputs and shared memory begin as NaN. Between two barriers, the warps run in a random order. The blocks of a cooperative kernel, which
may wait for each other, also run in a random order.
"""
import collections
import functools
import re

import numpy as np

TYPES = {f"{kind}{8 * size}": np.dtype(f"{letter}{size}") for size in (1, 2, 4, 8) for kind, letter in zip("usbf", "uiuf")
         if (kind, size) != ("f", 1)} | {"pred": np.dtype(bool)}
PAGE = 256  # bytes: arrays begin at a page, with an unused page in between
MANY = np.int32(-(2**31))
SHARED_MOST, MULTIPROCESSORS = 227 * 1024, 132  # of an H100; bytes per block


class Fault(Exception):
    pass


class Unknown(Fault):
    pass


# ---- Instructions. Each function gets the modifiers of an opcode and returns a function of numpy arrays. ----

def wide(dtype):
    return np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")


def high(a, b):
    """Returns the upper half of the products of 32-bit numbers."""
    return (a.astype(wide(a.dtype)) * b >> 32).astype(a.dtype)


def divide(a, b):
    if a.dtype.kind == "f":
        return a / b
    return (a - remainder(a, b)) // b


def remainder(a, b):
    if np.any(b == 0):
        raise Fault("divides an integer by zero")
    return np.fmod(a, b)


def shift_left(a, count):
    bits = 8 * a.dtype.itemsize
    return np.where(count < bits, a << np.minimum(count, bits - 1).astype(a.dtype), 0).astype(a.dtype)


def shift_right(a, count):
    bits = 8 * a.dtype.itemsize
    shifted = a >> np.minimum(count, bits - 1).astype(a.dtype)
    return shifted if a.dtype.kind == "i" else np.where(count < bits, shifted, 0).astype(a.dtype)


def fused(a, b, c):
    """Returns a · b + c, rounded once: exact products of float32, and 64 bits of the products of float64."""
    more = np.float64 if a.dtype == np.float32 else np.longdouble
    return (a.astype(more) * b + c).astype(a.dtype)


def fused_down(a, b, c):
    exact = a.astype(np.float64) * b + c
    rounded = exact.astype(np.float32)
    return np.where(rounded > exact, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def insert_bits(a, b, position, length):
    mask = np.uint64(((1 << int(length)) - 1) << int(position))
    return (b & ~mask) | (a << np.uint64(position) & mask)


def to_bfloat16(a):
    bits = a.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)
    return np.where(np.isnan(a), np.uint16(0x7FFF), rounded)


ROUNDINGS = {"rmi": np.floor, "rpi": np.ceil, "rni": np.rint, "rzi": np.trunc}


def conversion(rounding, saturates, to, of):
    """Returns the function for cvt."""
    if to == "bf16":
        if (rounding, of) != ("rn", "f32"):
            raise Unknown(f"the emulator does not know the opcode cvt.{rounding}.{to}.{of}")
        return to_bfloat16
    if of == "bf16":
        return lambda a: (a.astype(np.uint32) << 16).view(np.float32)
    target = TYPES[to]

    def convert(a):
        if saturates:
            a = np.clip(np.nan_to_num(a), 0, 1)
        if rounding in ROUNDINGS:
            a = ROUNDINGS[rounding](a)
        if a.dtype.kind == "f" and target.kind in "iu":
            limits = np.iinfo(target)
            a = np.clip(np.nan_to_num(a.astype(np.longdouble)), limits.min, limits.max)
        return a.astype(target)
    return convert


ORDERED = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


def comparison(name):
    """Returns the function for setp. Comparisons that end in u are also true for NaN."""
    if name in ("nan", "num"):
        return lambda a, b: (np.isnan(a) | np.isnan(b)) == (name == "nan")
    if name in ORDERED:
        return lambda a, b: ORDERED[name](a, b) & ((name != "ne") | (a == a) & (b == b))
    return lambda a, b: ORDERED[name[:-1]](a, b) | (a != a) | (b != b)


INTEGER = r"[usb](?:16|32|64)"
NUMBER = r"(?:[us](?:16|32|64)|f32|f64)"
FLOAT = r"f(?:32|64)"
# A pattern for the opcode, types of the operands if they are not the opcode's last word (s for the same, - for the result's register),
# and the function of the groups of the pattern.
ARITHMETIC = [
    (rf"(?:add|add\.rn)\.{NUMBER}", "", lambda: np.add),
    (rf"sub\.{NUMBER}", "", lambda: np.subtract),
    (rf"mul(?:\.lo\.[us](?:16|32|64)|(?:\.rn)?\.{FLOAT})", "", lambda: np.multiply),
    (r"mul\.hi\.[us]32", "", lambda: high),
    (r"mul\.wide\.[us](?:16|32)", "", lambda: lambda a, b: a.astype(wide(a.dtype)) * b),
    (r"mad\.lo\.[us](?:32|64)", "", lambda: lambda a, b, c: a * b + c),
    (r"mad\.wide\.([us])32", "s s {0}64", lambda sign: lambda a, b, c: a.astype(wide(a.dtype)) * b + c),
    (rf"fma\.rn\.{FLOAT}", "", lambda: fused),
    (r"fma\.rm\.f32", "", lambda: fused_down),
    (rf"div(?:\.[us](?:32|64)|\.rn\.{FLOAT})", "", lambda: divide),
    (r"rem\.[us](?:32|64)", "", lambda: remainder),
    (rf"neg\.(?:s32|s64|{FLOAT})", "", lambda: np.negative),
    (rf"abs\.{FLOAT}", "", lambda: np.abs),
    (rf"min\.{NUMBER}", "", lambda: np.fmin),
    (rf"max\.{NUMBER}", "", lambda: np.fmax),
    (rf"sqrt\.rn\.{FLOAT}", "", lambda: np.sqrt),
    (rf"rcp\.(?:rn|approx\.ftz)\.{FLOAT}", "", lambda: np.reciprocal),
    (r"ex2\.approx\.ftz\.f32", "", lambda: lambda a: np.exp2(a.astype(np.float64)).astype(np.float32)),
    (r"copysign\.f32", "", lambda: lambda sign, value: np.copysign(value, sign)),
    (r"and\.(?:pred|b\d+)", "", lambda: np.bitwise_and),
    (r"or\.(?:pred|b\d+)", "", lambda: np.bitwise_or),
    (r"xor\.(?:pred|b\d+)", "", lambda: np.bitwise_xor),
    (r"not\.(?:pred|b\d+)", "", lambda: np.invert),
    (rf"shl\.{INTEGER}", "s u32", lambda: shift_left),
    (rf"shr\.{INTEGER}", "s u32", lambda: shift_right),
    (r"bfi\.b64", "s s u32 u32", lambda: insert_bits),
    (rf"selp\.(?:{INTEGER}|{FLOAT})", "s s pred", lambda: lambda a, b, chosen: np.where(chosen, a, b)),
    (rf"setp\.(eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|nan|num)\.(?:{INTEGER}|{FLOAT})", "", comparison),
    (r"cvt(?:\.(rn|rz|rni|rzi|rmi|rpi))?(?:\.(sat))?\.(\w+)\.(\w+)", "", conversion),
    (rf"mov\.(?:pred|{INTEGER}|{FLOAT})", "", lambda: np.copy),
    (r"cvta(?:\.to)?\.(?:global|local)\.u64", "", lambda: np.copy),
]
MEMORY = re.compile(r"(ld|st)\.(param|global|shared|local)(?:\.nc)?(?:\.v([24]))?\.(\w+)")
CONTROL = re.compile(r"bra(\.uni)?|ret|trap|bar(rier)?\.sync|ld\.acquire\.gpu\.u32")


@functools.cache
def find_arithmetic(opcode):
    for pattern, types, function in ARITHMETIC:
        if found := re.fullmatch(pattern, opcode):
            return types.format(*found.groups()).split(), function(*found.groups())
    raise Unknown(f"the emulator does not know the opcode {opcode}")


Instruction = collections.namedtuple("Instruction", "text predicate negated opcode operands")


class Kernel:
    """A kernel of a Module, as basic blocks: instructions of which only the last one may be a branch, a barrier or a return."""

    def __init__(self, name, text, symbols):
        self.name, self.symbols = name, symbols
        head, body = re.split(r"\n\{", text, maxsplit=1)
        self.parameter_bytes = sum(int(size) for size in re.findall(r"\.param .*\[(\d+)\]", head))
        self.parameter_bytes += sum(int(bits) // 8 for bits in re.findall(r"\.param \.\w(\d+) \w+[,\s)]", head))
        self.most_threads = int(re.search(r"\.maxntid (\d+)", head)[1])
        self.is_cooperative = "%envreg" in body
        self.local_bytes = sum(int(size) for size in re.findall(r"\.local .*\[(\d+)\]", body))
        self.registers = {prefix: TYPES[kind] for kind, prefix in re.findall(r"\.reg \.(\w+)\s+(%\w+?)(?:<\d+>)?;", body)}
        self.blocks, self.labels = [[]], {}
        for statement in re.findall(r"\$\w+:|[^;:]+;", body):
            self.add(" ".join(statement.split()).lstrip("{} ").rstrip("; "))
        self.code = [[self.compile(i) for i in block] for block in self.blocks]

    def add(self, text):
        if text.startswith("$") and text.endswith(":"):
            if self.blocks[-1]:
                self.blocks.append([])
            self.labels[text[:-1]] = len(self.blocks) - 1
        elif text and not text.startswith("."):
            predicate, opcode, rest = re.fullmatch(r"(?:@(!?%\w+) )?([\w.:]+) ?(.*)", text).groups()
            operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", rest)
            negated = bool(predicate) and predicate.startswith("!")
            self.blocks[-1].append(Instruction(text, predicate and predicate.lstrip("!"), negated, opcode, operands))
            if CONTROL.fullmatch(opcode):
                self.blocks.append([])

    def compile(self, instruction):
        """Returns a function that executes an instruction in a Launch."""
        if instruction.opcode in ("ld.acquire.gpu.u32", "atom.add.release.gpu.u32"):
            return self.compile_atomic(instruction)
        if CONTROL.fullmatch(instruction.opcode):
            return None
        if memory := MEMORY.fullmatch(instruction.opcode):
            return self.compile_access(instruction, *memory.groups())
        if instruction.opcode == "shfl.sync.bfly.b32":
            return self.compile_shuffle(instruction)
        try:
            types, function = find_arithmetic(instruction.opcode)
        except Unknown as unknown:
            raise Unknown(f"{self.name}: {unknown}") from None
        to, *operands = instruction.operands
        last = instruction.opcode.split(".")[-1]
        if "{" in instruction.text:
            return self.compile_parts(instruction)
        last = {"f16": "f16", "bf16": "u16"}.get(last, last)
        readers = [self.reader(o, last if t == "s" else t) for o, t in zip(operands, types or ["s"] * len(operands))]
        write = self.writer(to)
        return lambda launch: write(launch, function(*[read(launch) for read in readers]))

    def compile_parts(self, instruction):
        """mov between one register and two or four registers with its parts."""
        to, of = ([o.strip() for o in operand.strip("{}").split(",")] for operand in instruction.operands)
        if instruction.opcode not in ("mov.b32", "mov.b64") or min(len(to), len(of)) != 1:
            raise Unknown(f"{self.name}: the emulator does not know {instruction.text}")
        bits = int(instruction.opcode[5:])
        part = f"b{bits // max(len(to), len(of))}"
        if len(of) == 1:
            read, writers = self.reader(of[0], f"b{bits}"), [self.writer(register) for register in to]

            def split(launch):
                parts = np.atleast_1d(read(launch)).view(TYPES[part]).reshape(-1, len(to))
                for i, write in enumerate(writers):
                    write(launch, parts[:, i].copy())
            return split
        readers, write = [self.reader(register, part) for register in of], self.writer(to[0])
        return lambda launch: write(launch, np.stack([launch.spread(r(launch)) for r in readers], axis=1).view(TYPES[f"b{bits}"])[:, 0])

    def dtype(self, register):
        return self.registers[re.match(r"%[a-zA-Z]+", register)[0]]

    def reader(self, operand, kind):
        """Returns a function that returns an operand's values in the running threads of a Launch, as `kind`."""
        to = TYPES[kind]
        if operand in self.symbols or operand.startswith("__local_depot") or operand.endswith("_param_0"):
            return lambda launch: to.type(launch.gpu.constants.get(operand, 0))
        if found := re.fullmatch(r"0([fd])([0-9A-Fa-f]+)", operand):
            value = np.frombuffer(bytes.fromhex(found[2])[::-1], "f4" if found[1] == "f" else "f8")[0]
            return lambda launch: value
        if not operand.startswith("%"):
            bits = int(operand) & (1 << 8 * to.itemsize) - 1
            value = np.array(bits, f"u{to.itemsize}").view(to)[()]
            return lambda launch: value
        special = operand.startswith(("%tid", "%ntid", "%ctaid", "%nctaid", "%globaltimer", "%envreg"))

        def read(launch):
            values = launch.special[operand][launch.running] if special else launch.read(operand)
            if values.dtype == to:
                return values
            return values.view(to) if values.dtype.itemsize == to.itemsize else values.astype(to)
        return read

    def writer(self, register):
        dtype = self.dtype(register)

        def write(launch, values):
            values = launch.spread(values)
            if values.dtype != dtype:
                values = values.view(dtype) if values.dtype.itemsize == dtype.itemsize else values.astype(dtype)
            launch.write(register, dtype, values)
        return write

    def compile_access(self, instruction, action, space, vector, kind):
        at, registers = instruction.operands[::-1] if action == "ld" else instruction.operands
        registers = [r.strip() for r in registers.strip("{}").split(",")]
        if len(registers) != int(vector or 1):
            raise Unknown(f"{self.name}: the emulator does not know {instruction.text}")
        base, offset = re.fullmatch(r"\[([^+\]]+?)(?:\+(-?\d+))?\]", at).groups()
        offset, dtype, text, noncoherent = int(offset or 0), TYPES[kind], instruction.text, ".nc" in instruction.opcode
        address = self.reader(base, "u64" if not base.startswith("%") else f"u{8 * self.dtype(base).itemsize}")
        store = action == "st"
        parts = [self.reader(r, kind) if store else self.writer(r) for r in registers]

        def access(launch):
            memory = launch.memories[space]
            addresses = launch.spread(address(launch)).astype(np.int64) + offset
            places = memory.places(launch, text, addresses, dtype.itemsize * len(parts), store) // dtype.itemsize
            cells = memory.cells(dtype)
            if noncoherent and (changed := np.isin(memory.owners[places * dtype.itemsize // PAGE], list(memory.changed))).any():
                launch.fail(text, changed, "reads by ld.global.nc an array to which this launch has written")
            for i, part in enumerate(parts):
                if store:
                    values = launch.spread(part(launch))
                    memory.track(launch, text, places + i, dtype, values)
                    cells[places + i] = values
                else:
                    memory.track(launch, text, places + i, dtype, None)
                    part(launch, cells[places + i])
        return access

    def compile_atomic(self, instruction):
        """The accesses of the barrier between all blocks (cooperative_groups::grid_group::sync). It has been passed when all blocks
        have added to its word."""
        to, at, *more = instruction.operands
        write, address, text = self.writer(to), self.reader(at.strip("[]"), "u64"), instruction.text
        add = more and self.reader(more[0], "u32")

        def access(launch):
            gpu, addresses = launch.gpu, launch.spread(address(launch)).astype(np.int64)
            places = gpu.places(launch, text, addresses, 4, bool(add)) // 4
            cells, found = gpu.cells(np.dtype(np.uint32)), np.zeros(len(places), np.uint32)
            terms = launch.spread(add(launch)) if add else np.zeros(len(places), np.uint32)
            for i, (place, term) in enumerate(zip(places, terms)):
                found[i] = cells[place]
                cells[place] += term
            write(launch, found)
            if add:
                launch.arrived += len(places)
                if launch.arrived % launch.blocks == 0:
                    gpu.forget_accesses()
        return access

    def compile_shuffle(self, instruction):
        to, of, distance, clamp, members = instruction.operands
        read, write = self.reader(of, "b32"), self.writer(to.split("|")[0])
        rules = [self.reader(o, "s32") for o in (distance, clamp, members)]

        def shuffle(launch):
            lanes = launch.lanes()
            distances, clamps, masks = (np.broadcast_to(r(launch), lanes.shape) for r in rules)
            if (clamps != 31).any() or (masks != -1).any():
                raise Fault(f"{self.name}: {instruction.text}: the emulator only knows shuffles over whole warps")
            values, here = np.zeros(launch.count, np.uint32), np.zeros(launch.count + 32, bool)
            values[lanes], here[lanes] = read(launch), True
            partners = lanes ^ distances
            if not here[partners].all():
                launch.fail(instruction.text, ~here[partners], "shuffles with a thread that does not take part")
            write(launch, values[partners])
        return shuffle


class Module:
    """The kernels of a PTX text. `names` maps the kernels' symbols to names."""

    def __init__(self, text, names):
        text = re.sub(r"//[^\n]*", "", text)
        self.constants = {}  # symbol: bytes of a table in global memory
        for _, name, values in re.findall(r"\.global \.align (\d+) \.b8 (\w+)\[\d+\] = \{([^}]*)\}", text):
            self.constants[name] = np.array([int(v) for v in values.split(",")], np.uint8)
        self.shared = re.findall(r"\.extern \.shared .* (\w+)\[\]", text)
        self.texts = {names[part.split("(")[0].strip()]: part for part in re.split(r"\.entry ", text)[1:]}

    def kernel(self, name):
        used = {symbol: table for symbol, table in self.constants.items() if symbol in self.texts[name]}
        return Kernel(name, re.split(r"\n\}\n", self.texts[name])[0], used | dict.fromkeys(self.shared))


# ---- Memory and execution. ----

class Memory:
    """Bytes, with the readers and writers of each word of 4 bytes since the last barrier: 0 (none), the number of a thread, a negative
    number (Launch.block_of) for several threads of one block, or MANY."""

    def __init__(self, size):
        self.bytes = np.zeros(-(-size // 8) * 8, np.uint8)
        self.readers, self.writers = np.zeros((2, self.bytes.size // 4), np.int32)

    def cells(self, dtype):
        return self.bytes.view(dtype)

    def track(self, launch, text, places, dtype, values):
        """Reports races. `values` are stored; None: loaded. Ignores elements of 1 or 2 bytes."""
        if dtype.itemsize < 4:
            return
        words = places if dtype.itemsize == 4 else 2 * places
        threads = launch.threads()
        written = self.writers[words]
        if values is None:
            raced = (written != 0) & (written != threads)
            read = self.readers[words]
            own = launch.block_of(threads)
            now = np.where((read == 0) | (read == threads), threads, np.where(launch.block_of(read) == own, own, MANY))
            self.readers[words] = now
            last = self.readers[words]
            several, of_own = last != now, (launch.block_of(last) == own) & (now != MANY)
            self.readers[words[several & of_own]] = own[several & of_own]
            self.readers[words[several & ~of_own]] = MANY
        else:
            read = self.readers[words]
            same = self.cells(dtype)[places] == values  # all may write the same value
            self.writers[words] = threads
            self.cells(dtype)[places] = values
            clash = (self.writers[words] != threads) & (self.cells(dtype)[places] != values)
            raced = ((read != 0) & (read != threads)) | ((written != 0) & (written != threads) & ~same) | clash
        if raced.any():
            launch.fail(text, raced, "uses a word that another thread " + ("has written" if values is None else "has used")
                        + ", without a barrier in between")


class Parameters(Memory):
    """The arguments of a kernel."""

    def __init__(self, data):
        self.bytes = np.frombuffer(data + bytes(-len(data) % 8), np.uint8)

    def places(self, launch, text, addresses, size, _store):
        wrong = (addresses % size != 0) | (addresses < 0) | (addresses + size > self.bytes.size)
        if wrong.any():
            launch.fail(text, wrong, f"reads its arguments at {addresses[wrong][0]} of {self.bytes.size} bytes")
        return addresses

    def track(self, *_):
        pass


class Shared(Memory):
    """The shared memory of the running blocks, or the local memory of their threads, side by side."""

    def __init__(self, name, owners, size):
        self.name, self.size, self.stride = name, size, -(-size // 16) * 16
        super().__init__(owners * self.stride)
        self.bytes[:] = 0xFF

    def places(self, launch, text, addresses, size, store):
        if (addresses % size).any():
            launch.fail(text, addresses % size != 0, f"accesses {self.name} memory at an address that is not a multiple of {size}")
        outside = (addresses < 0) | (addresses + size > self.size)
        if outside.any():
            launch.fail(text, outside, f"accesses {self.name} memory out of bounds, at {addresses[outside][0]} of {self.size} bytes")
        if launch.details is not None and self.name == "shared":
            launch.details.add_conflicts(launch, addresses, size)
        owner = launch.block if self.name == "shared" else launch.every
        return addresses + owner[launch.running] * self.stride


class Array:
    """An array in the global memory."""

    def __init__(self, name, address, values, writable):
        self.name, self.address, self.values, self.writable = name, address, values, writable


class Gpu(Memory):
    """Global memory with arrays, and launches of kernels. `most_blocks`: only some of a launch's blocks are run."""
    first = 1 << 20

    def __init__(self, seed=1, size=1 << 26, most_blocks=None, details=None):
        super().__init__(size)
        self.random, self.most_blocks, self.details = np.random.default_rng(seed), most_blocks, details
        self.arrays, self.used = [Array("no array", 0, np.zeros(0), False)], PAGE
        self.owners = np.zeros(size // PAGE, np.int16)
        self.changed = set()  # arrays to which the present launch has written
        self.ends = [0]
        self.constants = {}  # addresses of the tables of kernels
        self.grid_barrier = self.input("grid barrier", np.zeros(2, np.uint32), writable=True)
        self.launched = collections.Counter()

    def input(self, name, values, writable=False, offset=0):
        """Returns an Array with these values; `offset` bytes from an aligned address."""
        values = np.ascontiguousarray(values)
        begin, end = self.used + offset, self.used + offset + values.nbytes
        if end + PAGE > self.bytes.size:
            raise Fault("the arrays of this test need more memory than Gpu has")
        cells = self.bytes[begin:end].view(values.dtype).reshape(values.shape)
        cells[...] = values
        self.used = (end + 2 * PAGE - 1) // PAGE * PAGE
        self.owners[begin // PAGE:-(-end // PAGE)] = len(self.arrays)
        self.ends.append(end)
        self.arrays.append(Array(name, self.first + begin, cells, writable))
        return self.arrays[-1]

    def output(self, name, shape, dtype=np.float32, offset=0):
        array = self.input(name, np.zeros(shape, dtype), True, offset)
        array.values.view(np.uint8 if array.values.ndim else array.values.dtype).fill(0xFF)
        return array

    @staticmethod
    def view(name, values):
        return Array(name, 0, values, False)

    @staticmethod
    def clock(launches):
        """Returns the nanoseconds that the clock shows in a kernel's launch with this number."""
        return 10**9 + 1000 * launches

    def places(self, launch, text, addresses, size, store):
        at = addresses - self.first
        if (at % size).any():
            launch.fail(text, at % size != 0, f"accesses global memory at an address that is not a multiple of {size}")
        inside = (at >= 0) & (at + size <= self.bytes.size)
        owner = self.owners[np.where(inside, at // PAGE, 0)]
        outside = (owner == 0) | (at + size > np.array(self.ends)[owner])
        if outside.any():
            where = at[outside][0] + self.first
            near = max((a for a in self.arrays if a.address <= where), key=lambda a: a.address)
            launch.fail(text, outside, f"accesses global memory out of bounds, {where - near.address} bytes behind the start of "
                        f"{near.name}, which has {near.values.nbytes} bytes")
        if store:
            self.changed.update(np.unique(owner))
            for i in np.unique(owner):
                if not self.arrays[i].writable:
                    launch.fail(text, owner == i, f"writes to {self.arrays[i].name}, which is an input")
        if self.details is not None:
            self.details.add_traffic(launch, at, size, store)
        return at

    def forget_accesses(self, chosen=lambda accesses: slice(None)):
        """Forgets the accesses that the function `chosen` selects from an array of Memory's numbers; by default all."""
        for accesses in (self.readers[:self.used // 4], self.writers[:self.used // 4]):
            accesses[chosen(accesses)] = 0

    def launch(self, kernel, grid, threads, shared_bytes, *arguments):
        """Runs a kernel. `grid`: the number of blocks, or a tuple (x, y, z)."""
        x, y, z = grid if isinstance(grid, tuple) else (grid, 1, 1)
        parameters, _ = pack(arguments)
        if len(parameters) != kernel.parameter_bytes:
            raise Fault(f"{kernel.name}: the case passes {len(parameters)} bytes of arguments, the kernel has {kernel.parameter_bytes}")
        if not (0 < threads <= kernel.most_threads and shared_bytes <= SHARED_MOST and 0 < x < 2**31 and 0 < y < 65536 and 0 < z < 65536):
            raise Fault(f"{kernel.name}: impossible launch of {x}·{y}·{z} blocks, {threads} threads, {shared_bytes} bytes")
        blocks = np.arange(x * y * z)
        if kernel.is_cooperative and len(blocks) > MULTIPROCESSORS:
            raise Fault(f"{kernel.name}: {len(blocks)} blocks cannot run at once")
        if self.most_blocks and len(blocks) > self.most_blocks and not kernel.is_cooperative:
            blocks = blocks[np.linspace(0, len(blocks) - 1, self.most_blocks).astype(int)]
        for symbol, table in kernel.symbols.items():
            if table is not None and symbol not in self.constants:
                self.constants[symbol] = self.input(symbol, table).address
        self.forget_accesses()
        self.changed.clear()
        self.launched[kernel.name] += 1
        issued, executed = collections.Counter(), collections.Counter()
        at_once = len(blocks) if kernel.is_cooperative else max(1, 16384 // threads)
        with np.errstate(all="ignore"):
            for first in range(0, len(blocks), at_once):
                counts = Launch(self, kernel, (x, y, z), blocks[first:first + at_once], threads, shared_bytes, parameters).run()
                issued += counts[0]
                executed += counts[1]
        return Counts(issued, executed, x * y * z, len(blocks), threads)


# By opcode, how many instructions the warps issued and the threads executed in the blocks that were run (`run` of `blocks`).
Counts = collections.namedtuple("Counts", "issued executed blocks run threads")


def pack(members):
    """Returns the bytes and the alignment of a C struct: int is int, float is float, a list is a struct, an Array a pointer."""
    data, alignment = b"", 1
    for member in members:
        if isinstance(member, (list, tuple)):
            part, align = pack(member)
        else:
            if member is None or isinstance(member, Array):
                member = np.uint64(member.address if member else 0)
            elif type(member) in (int, float):  # neither bool nor float64
                member = np.int32(member) if isinstance(member, int) else np.float32(member)
            member = np.asarray(member)
            part, align = member.tobytes(), member.dtype.itemsize
        data += bytes(-len(data) % align) + part
        alignment = max(alignment, align)
    return data + bytes(-len(data) % alignment), alignment


class Launch:
    """The execution of some blocks of a kernel. The threads run in lockstep; of those apart, the lowest basic block first."""
    SPINNING, WAITING, ENDED = 1 << 39, 1 << 40, 1 << 41

    def __init__(self, gpu, kernel, grid, blocks, threads, shared_bytes, parameters):
        self.gpu, self.kernel, self.details = gpu, kernel, gpu.details
        self.count, self.blocks, self.arrived, self.threads_of_block = len(blocks) * threads, len(blocks), 0, threads
        self.every = np.arange(self.count)
        self.block = self.every // threads  # within this launch
        thread = self.every % threads
        self.warp = self.block * -(-threads // 32) + thread // 32
        self.number = (blocks[self.block] * threads + thread + 1).astype(np.int32)
        at = blocks[self.block]
        values = {"%tid.x": thread, "%ctaid.x": at % grid[0], "%ctaid.y": at // grid[0] % grid[1], "%ctaid.z": at // grid[0] // grid[1],
                  "%ntid.x": np.full(self.count, threads), "%tid.y": 0 * at, "%tid.z": 0 * at,
                  "%envreg1": np.full(self.count, gpu.grid_barrier.address >> 32), "%envreg2": np.full(self.count, gpu.grid_barrier.address)}
        values |= {f"%nctaid.{axis}": np.full(self.count, size) for axis, size in zip("xyz", grid)}
        self.special = {name: v.astype(np.uint32) for name, v in values.items()}
        self.special["%globaltimer"] = np.full(self.count, gpu.clock(gpu.launched[kernel.name]), np.uint64)
        self.memories = {"global": gpu, "shared": Shared("shared", len(blocks), shared_bytes),
                         "local": Shared("local", self.count, kernel.local_bytes), "param": Parameters(parameters)}
        self.registers = {}
        self.running = slice(None)
        self.is_whole = len(blocks) == np.prod(grid)  # all blocks of the grid

    def lanes(self):
        return self.every[self.running]

    def threads(self):
        """Returns the numbers of the running threads, from 1, within the whole grid."""
        return self.number[self.running]

    def block_of(self, accesses):
        """Returns the negative numbers of the blocks of threads. Others of a Memory's numbers are returned as they are."""
        return np.where(accesses > 0, -1 - (accesses - 1) // self.threads_of_block, accesses)

    def spread(self, values):
        """Returns one value for each running thread."""
        return values if values.ndim else np.full(len(self.lanes()), values)

    def read(self, register):
        if register not in self.registers:
            raise Fault(f"{self.kernel.name}: reads the register {register}, which has no value")
        return self.registers[register][self.running]

    def write(self, register, dtype, values):
        if isinstance(self.running, slice):
            self.registers[register] = values
            return
        if register not in self.registers:
            self.registers[register] = np.full(self.count * dtype.itemsize, 0xFF, np.uint8).view(dtype)
        self.registers[register][self.running] = values

    def fail(self, text, which, what):
        lane = self.lanes()[which][0]
        block = tuple(int(self.special[f"%ctaid.{axis}"][lane]) for axis in "xyz")
        raise Fault(f"{self.kernel.name}: thread {self.special['%tid.x'][lane]} of block {block} {what} ({text})")

    def turns(self):
        """Returns for each thread when its warp runs until the next barrier: the warps of a block run in two random groups."""
        return self.gpu.random.integers(0, 2, self.warp[-1] + 1)[self.warp] * len(self.kernel.code)

    def run(self):
        passes = np.zeros((2, len(self.kernel.code)), np.int64)  # of warps and of threads, through each basic block
        self.at = self.turns()  # turn · number of basic blocks + basic block
        self.turn = self.at.copy()
        self.resume = np.zeros(self.count, np.int64)  # where a waiting thread continues
        rounds = 0  # in which all threads waited for a number in memory
        while True:
            next_at = self.at.min()
            if next_at == self.ENDED:
                return [self.count_opcodes(times) for times in passes]
            if next_at >= self.SPINNING:
                rounds = 0 if self.release() else rounds + 1
                if rounds == 3:
                    self.fail("ld.acquire", self.at == self.SPINNING, "waits for a number in memory that does not come")
                self.at = np.where(self.at == self.SPINNING, self.turn + self.resume, self.at)
                continue
            here = np.nonzero(self.at == next_at)[0]
            self.running = slice(None) if len(here) == self.count else here
            block = next_at % len(self.kernel.code)
            passes[:, block] += 1 + np.count_nonzero(np.diff(self.warp[here])), len(here)
            self.run_block(block, here)

    def run_block(self, number, here):
        target = self.turn[here] + number + 1
        for instruction, execute in zip(self.kernel.blocks[number], self.kernel.code[number]):
            chosen = here
            if instruction.predicate:
                holds = self.registers[instruction.predicate][here] ^ instruction.negated
                chosen = here[holds]
            if execute is None:
                if instruction.opcode == "ret":
                    target = np.where(holds, self.ENDED, target) if instruction.predicate else self.ENDED
                elif instruction.opcode == "trap":
                    self.running = chosen
                    self.fail("trap", np.ones(len(chosen), bool), "stops the kernel")
                elif instruction.opcode in ("bar.sync", "barrier.sync"):
                    if instruction.predicate or instruction.operands != ["0"]:
                        raise Unknown(f"{self.kernel.name}: the emulator does not know {instruction.text}")
                    self.resume[here] = number + 1
                    target = self.WAITING
                else:
                    goal = self.kernel.labels[instruction.operands[0]] + self.turn[here]
                    target = np.where(holds, goal, target) if instruction.predicate else goal
            elif instruction.opcode == "ld.acquire.gpu.u32":
                execute(self)
                self.resume[here] = number + 1
                target = self.SPINNING
            elif instruction.predicate and len(chosen) < len(here):
                if len(chosen):
                    before, self.running = self.running, chosen
                    execute(self)
                    self.running = before
            else:
                execute(self)
        self.at[here] = target

    def release(self):
        """All threads have ended, or wait at a barrier or for a number in memory. Releases blocks of which all threads wait at a barrier,
        but not all blocks if the kernel is cooperative. Returns whether there were any."""
        self.running = slice(None)
        waits, spins = self.at == self.WAITING, np.bincount(self.block, self.at == self.SPINNING) > 0
        ready = (np.bincount(self.block, waits) > 0) & ~spins
        if self.kernel.is_cooperative and np.count_nonzero(ready) > 1:
            some = self.gpu.random.permutation(np.nonzero(ready)[0])[::2]
            ready = np.isin(np.arange(self.blocks), some)
        first = np.zeros(self.blocks, np.int64)
        first[self.block[waits]] = self.resume[waits]
        apart = ready[self.block] & (~waits | (self.resume != first[self.block]))
        if apart.any():
            self.fail("bar.sync", apart, "does not wait at the barrier at which other threads of its block wait")
        shared, released = self.memories["shared"], ready[self.block]
        for accesses in (shared.readers, shared.writers):
            accesses.reshape(self.blocks, shared.stride // 4)[ready] = 0
        turns = self.turns()
        self.turn = np.where(released, turns, self.turn)
        self.at = np.where(released, self.turn + self.resume, self.at)
        last = np.unique(self.block[self.at < self.ENDED])
        if self.is_whole and ready.any() and len(last) == 1:
            # The barrier of a block that runs alone also orders the block's accesses to global memory.
            block = self.block_of(self.number[self.block == last[0]][0])
            self.gpu.forget_accesses(lambda accesses: self.block_of(accesses) == block)
        return ready.any()

    def count_opcodes(self, passes):
        counts = collections.Counter()
        for times, block in zip(passes, self.kernel.blocks):
            for instruction in block:
                counts[instruction.opcode] += int(times)
        return counts
