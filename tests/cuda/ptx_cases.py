"""Launches of each own kernel of the CUDA backend, and the results by naive float64 formulas.

CASES has for each case its function, a small and an awkward size, whose results are compared, and a typical size for counts
(tools/bench/cuda_static.py). The arguments of a launch are the members of the kernel's struct; if a struct changes, its size or its
results differ from the case.
"""
import itertools
import math

import numpy as np
import ptx_emulator

ACTIVATIONS = ["none", "relu", "sigmoid", "tanh", "leaky_relu", "gelu", "silu"]
i64, f64 = np.int64, np.float64
CASES = []  # (function, variant, {name of a size: size})


# ---- Types of numbers. Those of 16 bits are rounded to the nearest, ties to even. ----

BFLOAT16, HALF = "__nv_bfloat16", "__half"
STORED = {"float": np.float32, HALF: np.float16, BFLOAT16: np.uint16}
PAIRS = list(itertools.product((BFLOAT16, "float"), repeat=2))  # of the input and the output of a layer


def rounded(values, kind):
    if kind == BFLOAT16:
        mantissa, exponent = np.frexp(np.asarray(values, f64))
        return np.ldexp(np.rint(mantissa * 256), exponent - 8)
    return np.asarray(values).astype(STORED.get(kind, f64)).astype(f64)


def stored(values, kind):
    return (np.float32(values).view(np.uint32) >> 16).astype(np.uint16) if kind == BFLOAT16 else values.astype(STORED[kind])


def loaded(array, kind):
    values = (array.values.astype(np.uint32) << 16).view(np.float32) if kind == BFLOAT16 else array.values
    return values.astype(f64)


def width_of(*kinds):
    """The numbers that a thread reads at once (kernels/numbers.hpp)."""
    return 8 if BFLOAT16 in kinds else 1


def with_wrong_pointers(arguments):
    return [with_wrong_pointers(a) if isinstance(a, (list, tuple)) else np.uint64(1 << 60) if isinstance(a, ptx_emulator.Array) else a
            for a in arguments]


class Run:
    """One case on one Gpu. `kernel_of` returns the Kernel of a name. The results are only compared if all blocks are run.

    `in_gang`: each kernel is launched for a gang of three. The case is the second member; the others have no step left and invalid pointers.
    """

    def __init__(self, gpu, kernel_of, seed=1, in_gang=False):
        self.gpu, self.kernel_of, self.random, self.counts = gpu, kernel_of, np.random.default_rng(seed), []
        self.in_gang = in_gang
        self.input, self.output = gpu.input, gpu.output

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def inputs(self, **shapes):
        return [self.input(name, self.normal(*np.atleast_1d(shape))) for name, shape in shapes.items()]

    def numbers(self, kind, scale=1.0, shift=0.0, writable=False, **shapes):
        """Returns for each shape an Array of the type `kind`, and its values."""
        values = [rounded(self.normal(*np.atleast_1d(shape)) * scale + shift, kind) for shape in shapes.values()]
        return [(self.input(name, stored(of, kind), writable), of) for name, of in zip(shapes, values)]

    def numbers_out(self, kind, **shapes):
        return [self.output(name, shape, STORED[kind]) for name, shape in shapes.items()]

    def launch(self, name, grid, threads, shared_bytes, *arguments):
        if self.in_gang and name != "SetGangSteps":
            return self.launch_in_gang(name, grid, threads, shared_bytes, arguments)
        self.counts.append((name, self.gpu.launch(self.kernel_of(name), grid, threads, shared_bytes, *arguments)))

    def launch_in_gang(self, name, grid, threads, shared_bytes, arguments):
        x, y, z = grid if isinstance(grid, tuple) else (grid, 1, 1)
        own, other = (np.frombuffer(ptx_emulator.pack(each)[0], np.uint64) for each in (arguments, with_wrong_pointers(arguments)))
        members, steps = np.array([other, own] + 6 * [other]), np.zeros((2, 8), np.int32)  # a GangSteps: left, is_active
        begins, ends = name.startswith("Load"), name.endswith("Loss") or name.startswith("SoftmaxCrossEntropy")
        steps[0, 1], steps[1, :2] = 1, (1, 0) if begins else (0, 1)  # a kernel that begins a step finds former values
        self.in_gang, of = False, self.input("gang", steps, writable=True)
        self.launch(f"GangKernel<{name} >" if name.endswith(">") else f"GangKernel<{name}>", (x, y, 3 * z), threads, shared_bytes, members, of, z)
        self.in_gang = True
        self.check(of, [[0, 0 if ends else 1] + [0] * 6, [0, 1] + [0] * 6], 0)

    def check(self, array, expected, tolerance=1e-5, kind=None):
        """`kind`: the type of the numbers. The kernel must round its result, which is within the tolerance, to the nearest."""
        got, expected = loaded(array, kind), np.asarray(expected, f64).reshape(array.values.shape)
        apart = tolerance * np.abs(expected).max()
        wrong = ~((rounded(expected - apart, kind) <= got) & (got <= rounded(expected + apart, kind)))
        if wrong.any() and not self.gpu.most_blocks:
            at = tuple(int(i[0]) for i in np.nonzero(wrong))
            raise AssertionError(f"{self.counts[-1][0]}: {array.name}{list(at)} is {got[at]:.9g}, not {expected[at]:.9g}; "
                                 f"{np.count_nonzero(wrong)} of {wrong.size} values are wrong")


def case(small, awkward, typical, *variants):
    """Adds a function as one case for each variant. A size that is a function gets the variant."""
    def add(function):
        for variant in variants or [()]:
            sizes = {"small": small, "awkward": awkward, "typical": typical}
            CASES.append((function, variant, {name: size(*variant) if callable(size) else size for name, size in sizes.items()}))
        return function
    return add


def groups_of(count, size):
    return -(-count // size)


def for_each(count):
    """The grid and the threads of a kernel with one element per thread."""
    return groups_of(count, 256), 256, 0


# ---- Activations, and other kernels of single elements. ----

def share_below(x):
    return 0.5 * (1 + np.vectorize(math.erf, otypes=[f64])(x / math.sqrt(2)))


def activate(name, x):
    x = np.asarray(x, f64)
    return {"none": lambda: x, "relu": lambda: np.maximum(x, 0), "sigmoid": lambda: 1 / (1 + np.exp(-x)), "tanh": lambda: np.tanh(x),
            "leaky_relu": lambda: np.where(x > 0, x, 0.01 * x), "gelu": lambda: x * share_below(x),
            "silu": lambda: x / (1 + np.exp(-x))}[name]()


def slope(name, at):
    """The derivative. `at` is the output of none, relu, sigmoid and tanh, and the input of the others."""
    at = np.asarray(at, f64)
    share = 1 / (1 + np.exp(-at))
    return {"none": lambda: np.ones_like(at), "relu": lambda: at > 0, "sigmoid": lambda: at * (1 - at), "tanh": lambda: 1 - at**2,
            "leaky_relu": lambda: np.where(at > 0, 1, 0.01), "silu": lambda: share + at * share * (1 - share),
            "gelu": lambda: share_below(at) + at * np.exp(-at**2 / 2) / math.sqrt(2 * math.pi)}[name]()


@case(lambda activation, kind: 5 if kind == "float" else 8, 1000, 1 << 20, *itertools.product(ACTIVATIONS, ("float", BFLOAT16)))
def elementwise(run, count, activation, kind):
    (x, of_x), (other, of_other), (grad, of_grad) = run.numbers(kind, x=count, other=count, grad_y=count)
    y, grad_x, grad_other = run.numbers_out(kind, y=count, grad_x=count, grad_other=count)
    which, grid, at = ACTIVATIONS.index(activation), for_each(count // width_of(kind)), None if activation == "none" else x
    for second in (other, None):
        run.launch(f"ElementwiseForward<{kind}>", *grid, which, x, second, y, i64(count))
        run.check(y, activate(activation, of_x + of_other if second else of_x), kind=kind)
        run.launch(f"ElementwiseBackward<{kind}>", *grid, which, at, grad, grad_x, grad_other if second else None, i64(count))
        run.check(grad_x, of_grad * slope(activation, of_x), kind=kind)
    run.check(grad_other, of_grad * slope(activation, of_x), kind=kind)


@case((2, 1, 2), (37, 5, 8), (1 << 16, 10, 10), ("float",), (BFLOAT16,))
def concatenate(run, size, kind):
    rows, first, second = size
    (a, of_a), (b, of_b) = run.numbers(kind, a=(rows, first), b=(rows, second))
    y, grad_a, grad_b = run.numbers_out(kind, y=(rows, first + second), grad_a=(rows, first), grad_b=(rows, second))
    numbers = i64([rows, first, second])
    run.launch(f"Concatenate<{kind}>", *for_each(y.values.size), *numbers, a, b, y, False)
    run.check(y, np.hstack([of_a, of_b]), 0, kind)
    run.launch(f"Concatenate<{kind}>", *for_each(y.values.size), *numbers, grad_a, grad_b, y, True)
    run.check(grad_a, of_a, 0, kind)
    run.check(grad_b, of_b, 0, kind)


def row_grid(lines, elements):
    threads = min(256, groups_of(elements, 32) * 32)
    parts = groups_of(elements, threads)
    return (lines * parts, threads, 0), parts


@case((1, 4, 2), (3, 35, 7), (64, 784, 10), *PAIRS)
def mean(run, size, of, to):
    batch, pixels, channels = size
    [(x, of_x)], [(grad_y, of_grad)] = run.numbers(of, x=size), run.numbers(to, grad_y=(batch, channels))
    [y], [grad_x] = run.numbers_out(to, y=(batch, channels)), run.numbers_out(of, grad_x=size)
    sizes = [1, pixels, channels, 1, 1, pixels, 1, 0, pixels]  # one window
    launch, parts = row_grid(batch, channels)
    run.launch(f"PoolingForward<{of}, {to}>", *launch, sizes, parts, x, y, None)
    run.check(y, of_x.mean(1), kind=to)
    launch, parts = row_grid(batch, pixels * channels)
    run.launch(f"PoolingBackward<{of}, {to}>", *launch, sizes, parts, grad_y, None, grad_x)
    run.check(grad_x, np.repeat(of_grad[:, None] / pixels, pixels, 1), kind=of)


# ---- Pooling. ----

@case((1, 4, 4, 1, 2, 2, 0), (2, 7, 9, 5, 3, 2, 1), (64, 28, 28, 10, 2, 2, 0), *itertools.product(("max", "average"), PAIRS))
def pooling(run, size, kind, types):
    batch, height, width, channels, kernel, stride, padding = size
    out = [(extent + 2 * padding - kernel) // stride + 1 for extent in (height, width)]
    (of, to), of_types = types, "<{}, {}>".format(*types)
    values = rounded(run.normal(batch, height, width, channels), of)
    values.flat[values.size // 2] = math.nan if kind == "max" else 0  # NaN counts as the largest
    x, [y] = run.input("x", stored(values, of)), run.numbers_out(to, y=(batch, *out, channels))
    winners = run.output("winners", y.values.shape, np.int32)
    expected, places = np.zeros(y.values.shape), np.zeros(y.values.shape)

    def window_of(row, column):
        across = np.arange(kernel) - padding
        return [(r, c) for r, c in itertools.product(row * stride + across, column * stride + across) if 0 <= r < height and 0 <= c < width]
    for row, column in np.ndindex(*out):
        inside = window_of(row, column)
        window = np.stack([values[:, r, c] for r, c in inside])
        expected[:, row, column] = window.max(0) if kind == "max" else window.sum(0) / kernel**2
        places[:, row, column] = np.array([r * width + c for r, c in inside])[window.argmax(0)]  # argmax finds NaN, too
    sizes = [height, width, channels, *out, kernel, stride, padding, kernel**2]
    [(grad_y, of_grad)], [grad_x] = run.numbers(to, grad_y=y.values.shape), run.numbers_out(of, grad_x=x.values.shape)
    launch, parts = row_grid(batch * out[0], out[1] * channels)
    run.launch("PoolingForward" + of_types, *launch, sizes, parts, x, y, winners if kind == "max" else None)
    if kind == "max":
        run.check(winners, places, 0)
        y.values[np.isnan(loaded(y, to)) & np.isnan(expected)] = 0
        run.check(y, np.nan_to_num(expected), 0, to)
    else:
        run.check(y, expected, kind=to)
    launch, parts = row_grid(batch * height, width * channels)
    run.launch("PoolingBackward" + of_types, *launch, sizes, parts, grad_y, winners if kind == "max" else None, grad_x)
    expected = np.zeros((batch, height * width, channels))
    for n, row, column, channel in np.ndindex(*of_grad.shape):
        value = of_grad[n, row, column, channel]
        if kind == "max":
            expected[n, int(places[n, row, column, channel]), channel] += value
        else:
            expected[n, [r * width + c for r, c in window_of(row, column)], channel] += value / kernel**2
    run.check(grad_x, expected, kind=of)


# ---- Layouts. ----

CONVERSIONS = [("float", "float"), ("float", BFLOAT16), (BFLOAT16, "float"), ("float", HALF), (HALF, "float")]


@case((2, 3, 4), (41, 17, 10), (1 << 17, 32, 32), *CONVERSIONS)
def copy_channels(run, size, of, to):
    rows, channels_from, channels_to = size
    [(source, values)], [y] = run.numbers(of, 100, source=(rows, channels_from)), run.numbers_out(to, y=(rows, channels_to))
    run.launch(f"CopyChannels<{of}, {to}>", *for_each(rows * channels_to), source, y, *i64(size))
    expected = np.zeros((rows, channels_to))
    both = min(channels_from, channels_to)
    expected[:, :both] = values[:, :both]
    run.check(y, expected, 0, to)


@case(4, 4 * 1003, 1 << 22, *CONVERSIONS[1:])
def convert_numbers(run, count, of, to):
    [(source, values)], [y] = run.numbers(of, 100, source=count), run.numbers_out(to, y=count)
    run.launch(f"ConvertNumbers<{of}, {to}>", *for_each(count // 4), source, y, i64(count))
    run.check(y, values, 0, to)


@case((1, (2, 3, 4), (4, 5, 4), 1), (3, (5, 7, 3), (4, 6, 2), -1), (64, (32, 32, 32), (34, 34, 32), 1), *CONVERSIONS)
def move_images(run, size, of, to):
    batch, (height, width, channels), out, down = size
    [(source, values)], [y] = run.numbers(of, source=(batch, height, width, channels)), run.numbers_out(to, y=(batch, *out))
    run.launch(f"MoveImages<{of}, {to}>", *for_each(y.values.size), source, y, *i64([batch, height, width, channels, *out, down]))
    expected = np.zeros((batch, *out))
    for row, column, channel in np.ndindex(*out):
        if 0 <= row - down < height and 0 <= column - down < width and channel < channels:
            expected[:, row, column, channel] = values[:, row - down, column - down, channel]
    run.check(y, expected, 0, to)


@case((1, 8, 8), (2, 70, 33), (64, 784, 32))
def transpose(run, size):
    batch, rows, columns = size
    [x], y = run.inputs(x=size), run.output("y", (batch, columns, rows))
    across = groups_of(columns, 32)
    tiles = across * groups_of(rows, 32)
    run.launch("Transpose", batch * tiles, 256, 32 * 33 * 4, x, y, i64(rows), i64(columns), tiles, across)
    run.check(y, x.values.swapaxes(1, 2), 0)


@case((2, 3, 1, 2, 4), (5, 7, 9, 8, 8), (64, 64, 9, 64, 64), *[(kind,) for kind in STORED])
def weights(run, size, kind):
    channels_out, channels_in, taps, padded_out, padded_in = size
    [canonical] = run.inputs(canonical=(channels_out, channels_in, taps))
    [packed] = run.numbers_out(kind, packed=(padded_out, taps, padded_in))
    [other], [other_packed] = run.inputs(other=(2, 1, taps)), run.numbers_out(kind, other_packed=(2, taps, 1))
    unpacked, other_unpacked = run.output("unpacked", canonical.values.shape), run.output("other_unpacked", other.values.shape)
    unused, copy = [*i64([1] * 5), None, None, 0], {"float": 0, BFLOAT16: 1, HALF: 2}[kind]

    def launch(unpacks, *pairs):
        """Copies the weights of two layers."""
        layers = [[*i64(sizes), of, to, copy] for sizes, (of, to) in zip((size, (2, 1, taps, 2, 1)), pairs)]
        grid, threads, shared = for_each(packed.values.size)
        run.launch(f"CopyWeights<{kind}>", (grid, 2, 1), threads, shared, *layers, *[unused] * 14, unpacks)
    launch(False, (canonical, packed), (other, other_packed))
    expected = np.zeros((padded_out, taps, padded_in))
    expected[:channels_out, :, :channels_in] = canonical.values.swapaxes(1, 2)
    run.check(packed, expected, 0, kind)
    run.check(other_packed, other.values.swapaxes(1, 2), 0, kind)
    if kind != HALF:
        launch(True, (packed, unpacked), (other_packed, other_unpacked))
        run.check(unpacked, rounded(canonical.values, kind), 0)
        run.check(other_unpacked, rounded(other.values, kind), 0)


@case(lambda of, to, width, _: (3, width, width), lambda of, to, width, _: (50, 3 * width, 2 * width), (1 << 17, 32, 32),
      *[(of, to, width, activation) for of, to in (*PAIRS, (HALF, "float")) for width in (1, 4 if to == "float" else 8)
        for activation in ("none", "relu", "gelu")])
def bias_activation(run, size, of, to, width, activation):
    rows, channels_from, channels = size
    [(source, values)], [y] = run.numbers(of, source=(rows, channels_from)), run.numbers_out(to, y=(rows, channels))
    [bias] = run.inputs(bias=channels)
    for add in (None, bias):
        run.launch(f"BiasActivation<{of}, {to}, {width}>", *for_each(y.values.size // width), ACTIVATIONS.index(activation), source, add, y,
                   *i64(size))
        run.check(y, activate(activation, values[:, :channels] + (bias.values if add else 0)), kind=to)


# ---- Sums over the rows of (rows, channels). ----

def cut_rows(rows, channels, width, rows_of_thread, most_parts, most_lane_bits=5):
    """A RowCut (kernels/rows.hpp), and its grid."""
    lane_bits = next((bits for bits in range(most_lane_bits) if width << bits >= channels), most_lane_bits)
    rows_of_part = max(groups_of(rows, most_parts), min(rows_of_thread * (256 >> lane_bits), rows))
    return [i64(channels), i64(rows_of_part), lane_bits], (groups_of(channels, width << lane_bits), groups_of(rows, rows_of_part), 1)


@case(lambda kind, _: (3, 2 * width_of(kind)), lambda kind, _: (333, 37) if kind == "float" else (1111, 40), (1 << 16, 32),
      *itertools.product(("float", BFLOAT16), ("none", "relu", "gelu")))
def bias_gradient(run, size, kind, activation):
    (rows, channels), width = size, width_of(kind)
    [(y, of_y)], [(grad, before)] = run.numbers(kind, y=size), run.numbers(kind, grad=size, writable=True)
    cut, grid = cut_rows(rows, channels, width, 4, groups_of(256, groups_of(channels, 32 * width)))
    partial, sums = run.output("partial", (grid[1], channels)), run.output("sums", channels)
    run.launch(f"BiasGradientPart<{kind}, {width}>", grid, 256, 4 * 256 * width, ACTIVATIONS.index(activation),
               None if activation == "none" else y, grad, cut, i64(rows), partial)
    run.check(grad, before * slope(activation, of_y), kind=kind)
    add_partials(run, (partial, sums))
    run.check(sums, loaded(grad, kind).sum(0))


# ---- Convolutions: NHWC images, weights (out, in, kernel, kernel), then biases. ----

def convolve(x, weight, before, after):
    kernel = weight.shape[2]
    x = np.pad(np.asarray(x, f64), ((0, 0), (before, after), (before, after), (0, 0)))
    height, width = x.shape[1] - kernel + 1, x.shape[2] - kernel + 1
    return sum(x[:, r:r + height, c:c + width] @ weight[:, :, r, c].T.astype(f64) for r, c in np.ndindex(kernel, kernel))


def divisor(number):
    """A Divisor (kernels/division.hpp)."""
    return [number, np.uint32(groups_of(2**31, number))]


def tile_sizes(rows, columns, kernel, channels, threads, of_columns):
    """A tile_of_columns() or a tile_of_kernel_rows() in shared memory (kernels/convolution_tile.hpp)."""
    pitch = groups_of(columns, 4) * 4 if of_columns else columns | 1
    plane = (rows + kernel - 1) * pitch
    plane += (4 if plane % 8 == 0 else 0) if of_columns else -(rows - 1) * pitch % 32
    paired = channels % 2 == 0
    vectors = channels // 2 if paired else channels
    strip = groups_of(rows + kernel - 1, max(1, threads // (pitch * vectors)))
    items = groups_of(rows + kernel - 1, strip) * pitch * vectors
    return [rows, pitch, plane, strip, items, paired, divisor(pitch * vectors), divisor(vectors)]


def plan_direct(variant, sizes, batch, rows, activation, x, slope_of, parameters, y):
    """Returns the blocks, threads, shared bytes and members of a DirectConvolution. `sizes`: the members of ConvolutionSizes."""
    (kernel, pixels, outputs), channels, width_out, channels_out = variant, sizes[2], sizes[4], sizes[5]
    groups, segments = groups_of(channels_out, outputs), groups_of(width_out, pixels)
    weight_plane = kernel * groups_of(kernel * outputs, 4) * 4
    weight_plane += 4 if weight_plane % 8 == 0 else 0
    while True:
        columns = segments * pixels - pixels + groups_of(pixels + kernel - 1, pixels) * pixels
        threads = min(256, groups_of(rows * segments * groups, 32) * 32)
        tile = tile_sizes(rows, columns, kernel, channels, threads, True)
        shared = 4 * max(channels * (tile[2] + groups * weight_plane), rows * width_out * channels_out)
        if rows == 1 or shared <= 72 * 1024 and rows * segments * groups <= 256:
            break
        rows = groups_of(rows, 2)
    bands = groups_of(sizes[3], rows)
    minor = channels if slope_of is None else channels_out
    return batch * bands, threads, shared, [
        sizes, tile, *map(divisor, (bands, segments, rows * segments, minor)), groups, width_out * channels_out % 4 == 0,
        slope_of is not None, ACTIVATIONS.index(activation), x, slope_of, parameters, y]


def launch_direct(run, variant, *arguments):
    *grid, members = plan_direct(variant, *arguments)
    run.launch(f"DirectConvolution<{', '.join(map(str, variant))}>", *grid, *members)


@case(lambda kernel, pixels, outputs: (1, 6, 6, 2, 2, kernel // 2, kernel // 2, 3, "none"),
      lambda kernel, pixels, outputs: (2, 7, 23, outputs + 1, outputs + 1, kernel - 1, 0, 3, "tanh"),
      lambda kernel, pixels, outputs: (8 if pixels == 2 else 256 if outputs > 5 else 64, 28, 28, *(2 * [10 if outputs in (5, 10) else 16]),
                                       kernel // 2, kernel // 2, 4 if pixels == 2 else 28 if outputs > 5 else 14, "relu"),
      *itertools.product((3, 5), (4,), (4, 5, 8, 10)), *itertools.product((3, 5), (2,), (4, 5)))
def direct_convolution(run, size, *variant):
    batch, height, width, channels, channels_out, before, after, rows, activation = size
    kernel = variant[0]
    out = [extent + before + after - kernel + 1 for extent in (height, width)]
    count = channels_out * channels * kernel**2
    x, parameters, grad_y = run.inputs(x=(batch, height, width, channels), parameters=count + channels_out,
                                       grad_y=(batch, *out, channels_out))
    weight = parameters.values[:count].reshape(channels_out, channels, kernel, kernel)
    y, grad_x = run.output("y", grad_y.values.shape), run.output("grad_x", x.values.shape)
    launch_direct(run, variant, [height, width, channels, *out, channels_out, before], batch, min(rows, out[0]), activation, x, None,
                  parameters, y)
    run.check(y, activate(activation, convolve(x.values, weight, before, after) + parameters.values[count:]))
    launch_direct(run, variant, [*out, channels_out, height, width, channels, kernel - 1 - before], batch, min(rows, height), activation,
                  grad_y, y, parameters, grad_x)
    grad = grad_y.values * slope(activation, y.values)
    run.check(grad_x, convolve(grad, weight[:, :, ::-1, ::-1].swapaxes(0, 1), kernel - 1 - before, kernel - 1 - after))


def plan_weight_gradient(kernel, outputs, sizes, batch, rows, activation, x, y, grad_y, partial):
    """Returns the threads, shared bytes and members of a DirectWeightGradient. `sizes`: the members of ConvolutionSizes."""
    _, _, channels, height_out, width_out, channels_out, _ = sizes
    items = channels * kernel
    slices = max(1, 256 // items)
    threads = min(256, groups_of(slices * items, 32) * 32)
    tile = tile_sizes(rows, width_out + kernel - 1, kernel, channels, threads, False)
    planes, piece = groups_of(channels * tile[2], 4) * 4, groups_of(width_out, groups_of(width_out, 8))
    shared = 4 * max(planes + rows * width_out * groups_of(outputs, 4) * 4, threads * (kernel * outputs + 1))
    vectors = channels_out if channels_out % 2 else channels_out // 2
    return threads, shared, [
        sizes, tile, batch, divisor(groups_of(height_out, rows)), piece,
        *map(divisor, (groups_of(width_out, piece), items, items * kernel, vectors)), slices, ACTIVATIONS.index(activation), x, y, grad_y,
        partial]


def add_partials(run, *layers):
    """A layer is (partial, sums)."""
    members = [[partial, *partial.values.shape, sums] for partial, sums in layers]
    groups = groups_of(max(sums.values.size for _, sums in layers), 32)
    run.launch("AddPartials", (groups, len(layers), 1), 256, 1024, *members, *[[None, 0, 0, None]] * (16 - len(layers)))


def weight_gradients(x, grad, kernel, before, after):
    """The gradients of a convolution's weights and biases, from the gradient before the activation."""
    padded = np.pad(x.astype(f64), ((0, 0), (before, after), (before, after), (0, 0)))
    weight = np.zeros((grad.shape[3], x.shape[3], kernel, kernel))
    for r, c in np.ndindex(kernel, kernel):
        weight[:, :, r, c] = np.tensordot(grad, padded[:, r:r + grad.shape[1], c:c + grad.shape[2]], ((0, 1, 2), (0, 1, 2)))
    return np.concatenate([weight.ravel(), grad.sum((0, 1, 2))])


@case(lambda kernel, outputs: (1, 6, 6, 1, 2, kernel // 2, kernel // 2, 6, 1, "none"),
      lambda kernel, outputs: (3, 7, 11, 5, outputs - 1, kernel - 1, 0, 3, 5, "sigmoid"),
      lambda kernel, outputs: (64, 28, 28, min(10, outputs) if outputs < 16 else 16, outputs, kernel // 2, kernel // 2, 7, 256, "relu"),
      *itertools.product((3, 5), (4, 8, 10, 16)))
def weight_gradient(run, size, kernel, outputs):
    batch, height, width, channels, channels_out, before, after, rows, blocks, activation = size
    out = [extent + before + after - kernel + 1 for extent in (height, width)]
    x, y, grad_y = run.inputs(x=(batch, height, width, channels), y=(batch, *out, channels_out), grad_y=(batch, *out, channels_out))
    partial = run.output("partial", (blocks, channels_out * (channels * kernel**2 + 1)))
    [other], sums = run.inputs(other=(17, 61)), run.output("sums", 61)
    grads = run.output("grad_parameters", partial.values.shape[1])
    *block, members = plan_weight_gradient(kernel, outputs, [height, width, channels, *out, channels_out, before], batch, rows, activation,
                                           x, y, grad_y, partial)
    run.launch(f"DirectWeightGradient<{kernel}, {outputs}>", blocks, *block, *members)
    add_partials(run, (other, sums), (partial, grads))
    run.check(sums, other.values.astype(f64).sum(0))
    run.check(grads, weight_gradients(x.values, grad_y.values * slope(activation, y.values), kernel, before, after))


@case(lambda kernel, weight_outputs, outputs: (1, 6, 6, 2, 2, kernel // 2, kernel // 2, 6, 1, "none"),
      lambda kernel, weight_outputs, outputs: (2, 7, 11, outputs, weight_outputs - 1, kernel - 1, 0, 3, 5, "tanh"),
      lambda kernel, weight_outputs, outputs: (8, 28, 28, 2 * outputs, weight_outputs, kernel // 2, kernel // 2, 4, 56, "relu"),
      *itertools.product((3, 5), (4, 8, 10, 16), (4, 5)))
def both_gradients(run, size, kernel, weight_outputs, outputs):
    batch, height, width, channels, channels_out, before, after, rows, blocks, activation = size
    out = [extent + before + after - kernel + 1 for extent in (height, width)]
    count = channels_out * channels * kernel**2
    x, y, grad_y, parameters = run.inputs(x=(batch, height, width, channels), y=(batch, *out, channels_out),
                                          grad_y=(batch, *out, channels_out), parameters=count)
    partial, grads = run.output("partial", (blocks, count + channels_out)), run.output("grad_parameters", count + channels_out)
    grad_x = run.output("grad_x", x.values.shape)
    threads, shared, weights = plan_weight_gradient(kernel, weight_outputs, [height, width, channels, *out, channels_out, before], batch,
                                                    rows, activation, x, y, grad_y, partial)
    input_blocks, _, input_shared, of_input = plan_direct(
        (kernel, 2, outputs), [*out, channels_out, height, width, channels, kernel - 1 - before], batch, min(rows, height), activation,
        grad_y, y, parameters, grad_x)
    run.launch(f"DirectGradients<{kernel}, {weight_outputs}, {outputs}>", blocks + input_blocks, threads, max(shared, input_shared), weights,
               of_input, blocks)
    add_partials(run, (partial, grads))
    grad, weight = grad_y.values * slope(activation, y.values), parameters.values.reshape(channels_out, channels, kernel, kernel)
    run.check(grads, weight_gradients(x.values, grad, kernel, before, after))
    run.check(grad_x, convolve(grad, weight[:, :, ::-1, ::-1].swapaxes(0, 1), kernel - 1 - before, kernel - 1 - after))


# ---- Linear layers. The columns of x are HWC, those of the weights CHW. ----

def channels_first(weight, pixels, channels):
    """Returns the weights (units, features) with columns in the order of x."""
    return weight.reshape(-1, channels, pixels).swapaxes(1, 2).reshape(len(weight), -1)


@case(lambda tile: (3, 4, 2, tile, 1, "none"), lambda tile: (9, 21, 13, tile + 1, 2, "sigmoid"),
      lambda tile: (64, 784, 10, tile, 31, "none"), *[(tile,) for tile in (2, 4, 5, 6, 8)])
def linear_forward(run, size, tile):
    batch, pixels, channels, units, parts, activation = size
    features = pixels * channels
    x, parameters = run.inputs(x=(batch, features), parameters=units * (features + 1))
    partial, y = run.output("partial", (parts, batch, units)), run.output("y", (batch, units))
    bias = run.input("bias", parameters.values[units * features:])
    run.launch(f"LinearForwardPart<{tile}>", (parts, groups_of(batch, 8), groups_of(units, tile)), 128, 128 * 8 * tile * 4,
               [i64(batch), features, pixels, channels, units], x, parameters, partial)
    run.launch("LinearForwardEnd", groups_of(batch * units, 128), 128, 0, i64(batch * units), units, parts, partial, bias,
               ACTIVATIONS.index(activation), y)
    weight = channels_first(parameters.values[:units * features].reshape(units, features), pixels, channels)
    run.check(y, activate(activation, x.values.astype(f64) @ weight.T + bias.values))


@case(lambda tile: (3, 4, 2, tile, 3, "none"), lambda tile: (37, 7, 13, tile - 3, 18, "tanh"), lambda tile: (64, 784, 10, tile, 32, "none"),
      *[(tile,) for tile in (4, 8, 12, 16, 24, 32)])
def linear_backward(run, size, tile):
    batch, pixels, channels, units, samples_of_part, activation = size
    features, parts = pixels * channels, groups_of(batch, samples_of_part)
    x, y, grad_y, weight = run.inputs(x=(batch, features), y=(batch, units), grad_y=(batch, units), weight=(units, features))
    grad_x, grads = run.output("grad_x", x.values.shape), run.output("grad_parameters", units * (features + 1))
    partial = run.output("partial", (parts, units, features + 1))
    sizes, which = [i64(batch), features, pixels, channels, units], ACTIVATIONS.index(activation)
    run.launch(f"LinearBackward<{tile}>", (groups_of(features + 1, 64), parts, 1), 64, 16 * tile * 4, sizes, which, i64(samples_of_part),
               x, y, grad_y, weight, grad_x, grads, partial if parts > 1 else None)
    if parts > 1:
        run.launch("LinearBackwardEnd", (groups_of(features + 1, 128), units, 1), 128, 0, sizes, parts, partial, grads)
    grad = grad_y.values * slope(activation, y.values)
    run.check(grad_x, grad @ channels_first(weight.values.astype(f64), pixels, channels))
    of_weight = (grad.T @ x.values).reshape(units, pixels, channels).swapaxes(1, 2)
    run.check(grads, np.concatenate([of_weight.ravel(), grad.sum(0)]))


# ---- The state of a step (step_row.hpp). ----

SCALARS = ("rate weight_decay keep momentum nesterov first beta1 rest1 beta2 rest2 root_correction epsilon corrected_step").split()
OPTIMIZER = np.dtype([(n, {"nesterov": "?", "first": "?", "corrected_step": "i8"}.get(n, "f4")) for n in SCALARS], align=True)
ROW = np.dtype([("grad_scale", "f4"), ("label_smoothing", "f4"), ("optimizer", OPTIMIZER), ("average_share", "f4"),
                ("random_key", "u4", 2), ("first_sample", "i8"), ("samples", "i8")], align=True)
LOSS_SCALE = np.dtype([("scale", "f4"), ("good_steps", "i4"), ("skipped", "i8"), ("skips", "i4"), ("average_waits", "i4")], align=True)
SUMS = np.dtype([("loss", "f8"), ("correct", "i8"), ("samples", "i8")])
STATE = np.dtype([("row", "i8"), ("current", ROW), ("sums", SUMS), ("loss_scale", LOSS_SCALE), ("found_overflow", "i4")], align=True)


def step_state(run, writable=False, samples=0, **optimizer):
    values = np.zeros(1, STATE)
    values["row"] = 1
    row = values["current"][0]
    row["grad_scale"], row["samples"], row["random_key"], row["first_sample"] = 0.25, samples, (0xDEADBEEF, 77), 5
    for name, value in optimizer.items():
        row["optimizer"][name] = value
    values["loss_scale"]["scale"] = 4
    return run.input("state", values, writable)


def philox(counter, key):
    """Philox4x32-10 of Salmon et al. (SC 2011)."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ key[0], b & 0xFFFFFFFF, a >> 32 ^ counter[3] ^ key[1], a & 0xFFFFFFFF]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return counter


@case((2, 4), (5, 131), (64, 7840))
def dropout(run, size):
    batch, features = size
    state, [x], y = step_state(run), run.inputs(x=size), run.output("y", size)
    key, layer, dropped, factor = (0xDEADBEEF, 77), 3, int(0.3 * 2**32), 1 / 0.7
    run.launch("Dropout", *for_each(batch * groups_of(features, 4)), state, [np.uint32(0), np.uint32(0), layer, np.uint32(dropped), factor],
               x, y, i64(batch), i64(features))
    if not run.gpu.most_blocks:
        words = [philox([feature // 4, layer, 5 + sample, 0], key)[feature % 4] for sample, feature in np.ndindex(*size)]
        run.check(y, x.values * factor * (np.reshape(words, size) >= dropped))


# ---- Normalisation over (batch, pixels, channels). ----

def batch_norm_size(of, to, channels):
    """Four parts of the rows; the last two are padding."""
    lane_bits = cut_rows(1, channels, width_of(of, to), 8, 1)[0][2]
    return 5, (8 * 256 >> lane_bits) * 3 // 5 + 7, channels, 3


@case(lambda of, to, activation: batch_norm_size(of, to, 24 if activation == "relu" else 8),
      lambda of, to, activation: batch_norm_size(of, to, {"none": 264, "relu": 40, "sigmoid": 96}[activation] - (width_of(of, to) == 1)),
      lambda of, to, _: (64, 1024, 32, 64), *[(*types, activation) for types in PAIRS for activation in ("none", "relu", "sigmoid")])
def batch_norm(run, size, of, to, activation, is_cooperative=False):
    batch, pixels, channels, samples = size  # the other samples are padding
    state, width, rows = step_state(run, samples=samples), width_of(of, to), batch * pixels
    [(x, of_x)], [(grad_y, of_grad)] = run.numbers(of, shift=1.5, x=size[:3]), run.numbers(to, grad_y=size[:3])
    [y], [grad_x] = run.numbers_out(to, y=size[:3]), run.numbers_out(of, grad_x=size[:3])
    every, every_grad = run.input("parameters", run.normal(3, channels)), run.output("grad_parameters", (3, channels))
    parameters, grads = (type(every)(a.name, a.address + 4 * channels, a.values[1:], a.writable) for a in (every, every_grad))
    has_bias = of == BFLOAT16  # the bias of the convolution before, which is before these parameters
    bias = every.values[0].astype(f64) if has_bias else 0.0
    buffers = run.input("buffers", np.array([np.zeros(channels), np.ones(channels)], np.float32), writable=True)
    memory = [run.output(name, count, kind) for name, count, kind in (
        ("forward_sums", 2 * channels + 1, f64), ("backward_sums", 2 * channels + 1, f64), ("mean", channels, f64),
        ("inverse_deviation", channels, f64), ("factors", 3 * channels, np.float32))]
    statistics = [i64(channels), f64(0.1), f64(1e-5), parameters, buffers, i64(-channels if has_bias else 0), memory]
    blocks, rows_of_thread, lane_bits = (132, 4, 3) if width > 1 else (528, 8, 5)
    cut, grid = cut_rows(rows, channels, width, rows_of_thread, max(1, blocks // groups_of(channels, width << lane_bits)), lane_bits)
    partial, which = run.output("partial", (grid[1], 2, channels), f64), ACTIVATIONS.index(activation)
    has_totals = width == 1 or activation == "sigmoid"  # in float32; with several ranks, which then add their sums
    gradient = [which, x, y if activation == "sigmoid" else None, grad_y]

    def launch(half, state, parts, gradient, partial, values, grads, results, kept=0):
        is_backward, bytes_of = gradient[3] is not None, {BFLOAT16: 2, "float": 4}
        name = f"PersistentBatchNorm<{of}, {to}, {width}, {str(is_backward).lower()}>"
        shared = max(2 * 256 * width * 8, 2 * 256 * 8 + 32 * width * 5 * 4) + kept * 256 * width * (bytes_of[of] + is_backward * bytes_of[to])
        run.launch(f"HalfKernel<{name}, {half}>" if half else name, grid, 256, shared, state, i64(pixels), i64(rows), cut, parts, kept,
                   gradient, statistics, partial, values, grads, results)

    def train(gradient, grads, results):
        if is_cooperative:  # with one row less than a thread has
            kept = min(-(-cut[1] // (256 >> cut[2])), 20) - (samples < batch)
            return launch("", state, grid[1], gradient, partial, None, grads, results, int(kept))
        launch("true", state, grid[1], gradient, partial, None, grads, results)
        if not has_totals:
            return launch("false", state, grid[1], gradient, partial, None, grads, results)
        sums = memory[0 if grads is None else 1]
        run.launch("BatchNormTotals", *for_each(32 * channels), state, i64(pixels), grid[1], partial, sums, grads, statistics)
        values = type(every)("values", memory[0].address + 16 * channels, memory[0].values[2 * channels:], True)
        return launch("false", state, 1, gradient, sums, values, None, results)

    if not is_cooperative:
        launch("false", None, 0, [which, x, None, None], None, None, None, y)  # validation
        run.check(y, activate(activation, (of_x + bias) / np.sqrt(1 + 1e-5) * parameters.values[0] + parameters.values[1]), kind=to)

    train([which, x, None, None], None, y)
    real = of_x[:samples].reshape(-1, channels)
    centre, variance = real.mean(0), real.var(0)
    normal = (of_x - centre) / np.sqrt(variance + 1e-5)
    there = np.arange(batch)[:, None, None] < samples
    run.check(y, np.where(there, activate(activation, normal * parameters.values[0] + parameters.values[1]), 0), kind=to)
    run.check(buffers, [0.1 * (centre + bias), 0.9 + 0.1 * variance * len(real) / (len(real) - 1)])

    train(gradient, grads, grad_x)
    grad = np.where(there, of_grad * slope(activation, loaded(y, to)), 0)
    of_weight, of_bias = (grad * normal).sum((0, 1)), grad.sum((0, 1))
    run.check(grads, [of_weight, of_bias])
    if has_bias:
        run.check(run.gpu.view("grad_bias", every_grad.values[0]), np.zeros(channels), 0)
    inner = grad - of_bias / len(real) - normal * of_weight / len(real)
    run.check(grad_x, np.where(there, parameters.values[0] / np.sqrt(variance + 1e-5) * inner, 0), kind=of)


@case(lambda of, to, activation: batch_norm_size(of, to, 24 if activation == "relu" else 8),
      lambda of, to, activation: batch_norm_size(of, to, {"none": 264, "relu": 40, "sigmoid": 96}[activation]),
      lambda of, to, _: (64, 1024, 32, 64),
      *[(*types, activation) for types in PAIRS[:3] for activation in ("none", "relu", "sigmoid")])
def persistent_batch_norm(run, size, of, to, activation):
    batch_norm(run, size, of, to, activation, is_cooperative=True)


@case((2, 3, 2, 1), (3, 13, 37, 2), (64, 784, 10, 64))
def layer_norm(run, size):
    batch, pixels, channels, parts = size
    x, parameters, grad_y = run.inputs(x=(batch, pixels, channels), parameters=(2, channels), grad_y=(batch, pixels, channels))
    y, grad_x, grads = run.output("y", x.values.shape), run.output("grad_x", x.values.shape), run.output("grad_parameters", (2, channels))
    moments, partial = run.output("moments", (batch, 2), f64), run.output("partial", (parts, 2, channels), f64)
    sizes = i64([pixels * channels, channels])
    run.launch("LayerNormForward", batch, 256, 2048, *sizes, f64(1e-5), parameters, x, y, moments)
    flat = x.values.astype(f64).reshape(batch, -1)
    deviation = np.sqrt(flat.var(1) + 1e-5)[:, None, None]
    normal = (x.values - flat.mean(1)[:, None, None]) / deviation
    run.check(y, normal * parameters.values[0] + parameters.values[1])
    run.launch("LayerNormPartials", (groups_of(channels, 32), parts, 1), 256, 4096, *i64([batch * pixels, pixels, channels]), parts,
               x, grad_y, moments, partial)
    run.launch("LayerNormTotals", *for_each(2 * channels), i64(channels), parts, partial, grads)
    run.check(grads, [(grad_y.values * normal).sum((0, 1)), grad_y.values.astype(f64).sum((0, 1))])
    run.launch("LayerNormInputGradient", batch, 256, 2048, *sizes, parameters, x, grad_y, moments, grad_x)
    grad = grad_y.values * parameters.values[0].astype(f64)
    inner = grad - grad.mean((1, 2), keepdims=True) - normal * (grad * normal).mean((1, 2), keepdims=True)
    run.check(grad_x, inner / deviation)


# ---- Steps: batches, losses, gradients, optimizers. ----

def step_view(run, state, batch, indices, pixels, answers, channels, per_image, class_weights=None, distortions=(0, 0, 0, 0, 0, 0.0),
              predictions=None):
    rows = run.input("rows", np.repeat(state.values["current"], 3))
    for row, other in zip(rows.values, (3, 1, 2)):
        for name in ("grad_scale", "average_share", "random_key", "first_sample", "samples"):
            row[name] *= other
    every = np.full((3, batch), -1, i64)
    every[int(state.values["row"][0])] = indices
    mean_of, deviation = run.normal(channels), np.abs(run.normal(channels)) + 0.5
    floats = pixels is not None and pixels.values.dtype == np.float32
    return [rows, run.input("indices", every), predictions, state, pixels, answers, run.input("mean", mean_of), run.input("deviation", deviation),
            class_weights, i64(per_image), int(floats), i64(channels), i64(batch), list(distortions)], mean_of, deviation


@case((2, 4, 1), (5, 35, 3), (64, 784, 1), (1,), (4,))
def load_batch(run, size, width):
    batch, pixels, channels = size
    per_image = groups_of(pixels * channels, width) * width if channels == 1 else pixels * channels // 12 * 12
    images = run.input("pixels", run.random.integers(0, 256, (batch + 1, per_image)).astype(np.uint8))
    indices = run.random.permutation(batch + 1)[:batch]
    indices[-1] = -1
    state = state_before_step(run)
    view, mean_of, deviation = step_view(run, state, batch, indices, images, None, channels, per_image)
    row = take_row(state)
    out = run.output("out", (batch, per_image))
    threads = min(256, groups_of(groups_of(per_image, width), 32) * 32)
    parts = groups_of(groups_of(per_image, width), threads)
    run.launch(f"LoadBatch<{width}>", batch * parts, threads, 0, view, out, parts)
    check_begun(run, state, row)
    every = np.arange(per_image) % channels
    run.check(out, np.where(indices[:, None] < 0, 0, (images.values[indices] / 255.0 - mean_of[every]) / deviation[every]))


def distorted(image, place, shift, mirrors, cutout, height, width, rotation):
    """Returns the image (height, width, channels), mirrored, rotated, moved and cut, and which pixels are cut."""
    key = (0xDEADBEEF, 77)
    words, cut = philox([0xFFFFFFFF, 0xFFFFFFFF, place, 0], key), philox([0xFFFFFFFE, 0xFFFFFFFF, place, 0], key)
    down, right = ((word * (2 * shift + 1) >> 32) - shift for word in words[:2])
    if mirrors and words[2] >> 31:
        image = image[:, ::-1]
    if rotation:
        angle = rotation * ((words[3] ^ 1 << 31) - (1 << 31)) / 2**31
        original, image = image, np.zeros_like(image)
        for row, column in np.ndindex(height, width):
            y, x = row - (height - 1) / 2, column - (width - 1) / 2
            at = math.cos(angle) * y + math.sin(angle) * x + (height - 1) / 2, math.cos(angle) * x - math.sin(angle) * y + (width - 1) / 2
            for r, c in itertools.product(*(range(math.floor(a), math.floor(a) + 2) for a in at)):
                if 0 <= r < height and 0 <= c < width:
                    image[row, column] += (1 - abs(at[0] - r)) * (1 - abs(at[1] - c)) * original[r, c]
    moved, is_cut = np.zeros_like(image), np.zeros((height, width), bool)
    for row, column in np.ndindex(height, width):
        if 0 <= row - down < height and 0 <= column - right < width:
            moved[row, column] = image[row - down, column - right]
        top, left = (cut[0] * height >> 32) - cutout // 2, (cut[1] * width >> 32) - cutout // 2
        is_cut[row, column] = top <= row < top + cutout and left <= column < left + cutout
    return moved, is_cut


@case((2, 4, 4, 1), (5, 7, 9, 3), (64, 28, 28, 1),
      (False, 0, 0, 0, 0.0), (True, 0, 0, 0, 0.0), (False, 2, 1, 3, 0.0), (True, 1, 1, 2, 0.5), (False, 0, 0, 0, 3.0))
def load_each_pixel(run, size, floats, shift, mirrors, cutout, rotation):
    batch, height, width, channels = size
    shape = batch + 1, height, width, channels
    images = run.input("pixels", run.normal(*shape) if floats else run.random.integers(0, 256, shape).astype(np.uint8))
    indices = run.random.permutation(batch + 1)[:batch]
    indices[-1] = -1
    distortions = (shift, mirrors, cutout, height, width, rotation)
    state = state_before_step(run)
    view, mean_of, deviation = step_view(run, state, batch, indices, images, None, channels, height * width * channels, None,
                                         distortions)
    row = take_row(state)
    out = run.output("out", (batch, height, width, channels))
    run.launch("LoadEachPixel", *for_each(out.values.size), view, out)
    check_begun(run, state, row)
    expected = np.zeros(out.values.shape)
    for sample, index in enumerate(indices):
        if index >= 0 and not run.gpu.most_blocks:
            image, is_cut = distorted(images.values[index] / (1.0 if floats else 255.0), 5 + sample, *distortions)
            expected[sample] = np.where(is_cut[..., None], 0, (image - mean_of) / deviation)
    run.check(out, expected)


@case(lambda lanes, weighted: (2, 3 if lanes < 32 else 33), lambda lanes, weighted: (41, 31 if lanes < 32 else 70),
      lambda lanes, weighted: {4: (256, 10), 16: (32, 10), 32: (64, 100)}[lanes], *itertools.product((4, 16, 32), (False, True)))
def softmax_cross_entropy(run, size, lanes, weighted):
    batch, classes = size
    state, smoothing = step_state(run, writable=True), 0.125 if weighted else 0.0
    state.values["current"]["label_smoothing"] = smoothing
    labels = run.random.integers(0, classes, batch + 1).astype(np.int32)
    weight = np.abs(run.normal(classes)) if weighted else np.ones(classes)
    indices = run.random.permutation(batch + 1)[:batch]
    indices[-1] = -1
    [logits], grad = run.inputs(logits=size), run.output("grad", size)
    class_weights = run.input("class_weights", np.float32(weight)) if weighted else None
    predictions = run.output("predictions", (3, batch), np.int32)
    view, *_ = step_view(run, state, batch, indices, None, run.input("labels", labels), 1, 1, class_weights, predictions=predictions)
    threads = min(512, groups_of(batch * lanes, 32) * 32)
    run.launch(f"SoftmaxCrossEntropy<{lanes}>", 1, threads, threads // 32 * 16, view, logits, i64(classes), grad)
    rows, label = logits.values[indices >= 0].astype(f64), labels[indices[indices >= 0]]
    target = ((1 - smoothing) * np.eye(classes)[label] + smoothing / classes) * weight
    total = np.log(np.exp(rows).sum(1, keepdims=True))
    expected = np.zeros(size)
    expected[indices >= 0] = 0.25 * (target.sum(1, keepdims=True) * np.exp(rows - total) - target)
    run.check(grad, expected)
    predicted = np.full((3, batch), -1)  # what is not written
    predicted[1, indices >= 0] = rows.argmax(1)
    run.check(predictions, predicted, 0)
    check_ended(run, state, (target * (total - rows)).sum(), np.count_nonzero(rows.argmax(1) == label), batch - 1)


def state_before_step(run):
    """Returns a state with numbers in all fields of the row."""
    state = step_state(run, True, 8, **{name: 1 + number for number, name in enumerate(SCALARS)})
    state.values["current"]["average_share"], state.values["current"]["label_smoothing"] = 0.5, 0.25
    return state


def take_row(state):
    """Returns state.current, and clears it."""
    row = state.values["current"][0].copy()
    state.values["current"] = np.zeros(1, ROW)
    return row


def check_begun(run, state, row):
    row["grad_scale"] *= state.values["loss_scale"]["scale"][0]
    for name in ROW.names:
        for of, expected in [(state.values["current"][name], row[name])] if name != "optimizer" else [
                (state.values["current"][name][scalar], row[name][scalar]) for scalar in SCALARS]:
            run.check(run.gpu.view(name, of), expected, 0)


def check_ended(run, state, loss, correct, samples):
    run.check(run.gpu.view("row", state.values["row"]), [2], 0)
    for name, expected in (("loss", loss), ("correct", correct), ("samples", samples)):
        run.check(run.gpu.view(name, state.values["sums"][name]), [expected], 1e-9)


@case((2, 1), (41, 3), (64, 4), (0,), (1,))
def regression_loss(run, size, kind):
    batch, outputs = size
    state, indices = step_state(run, writable=True), run.random.permutation(batch + 1)[:batch]
    indices[-1] = -1
    predictions, targets = run.inputs(predictions=size, targets=(batch + 1, outputs))
    grad = run.output("grad", size)
    view, *_ = step_view(run, state, batch, indices, None, targets, 1, 1)
    threads = min(512, groups_of(batch * outputs, 32) * 32)
    run.launch("RegressionLoss", 1, threads, threads // 32 * 16, view, kind, predictions, i64(outputs), grad)
    apart = np.where(indices[:, None] < 0, 0, predictions.values.astype(f64) - targets.values[indices])
    run.check(grad, 0.25 / outputs * (np.sign(apart) if kind else 2 * apart))
    check_ended(run, state, (np.abs(apart) if kind else apart**2).sum() / outputs, 0, batch - 1)


@case(None, None, None)
def gang_steps(run, _):
    left, steps = np.arange(1, 9, dtype=np.int32), run.output("steps", (2, 8), np.int32)
    run.launch("SetGangSteps", 1, 32, 0, steps, left)
    run.check(steps, [left, [-1] * 8], 0)


@case((3, None), (1000, 700), (1 << 16, None))
def loss_scaling(run, size):
    count, overflow = size
    state, values = step_state(run, writable=True, corrected_step=9), run.normal(count)
    if overflow:
        values[overflow] = math.inf
    grads = run.input("grads", values, writable=True)
    run.launch("Unscale", *for_each(count), state, grads, i64(count))
    grads.values[~np.isfinite(values)] = values[~np.isfinite(values)] = 0
    run.check(grads, values / 4.0, 0)
    run.launch("DecideOnStep", 1, 1, 0, state)
    skips = overflow is not None
    for name, expected in (("skips", skips), ("skipped", skips), ("scale", 2 if skips else 4), ("good_steps", not skips)):
        run.check(run.gpu.view(name, state.values["loss_scale"][name]), [expected], 0)
    run.check(run.gpu.view("found_overflow", state.values["found_overflow"]), [0], 0)


@case((7, 1, 2.0), (1000, 3, 5.0), (1 << 16, 256, 5.0))
def clip_norm(run, size):
    count, parts, most = size
    values = run.input("values", run.normal(count), writable=True)
    before, partial = values.values.astype(f64), run.output("partial", parts, f64)
    run.launch("SquareSums", parts, 256, 2048, values, i64(count), partial)
    run.launch("ScaleToNorm", groups_of(count, 256), 256, 8 * parts, values, i64(count), f64(most), parts, partial)
    run.check(values, before * min(1, most / np.linalg.norm(before)))


def sgd(n, g, p, a, b):
    g = g + n["weight_decay"] * p
    a = n["momentum"] * a + g
    return p - n["rate"] * (g + n["momentum"] * a), a, b


def adam(n, g, p, a, b):
    p = n["keep"] * p
    g = g + n["weight_decay"] * p
    a, b = n["beta1"] * a + n["rest1"] * g, n["beta2"] * b + n["rest2"] * g * g
    return p - n["rate"] * a / (np.sqrt(b) / n["root_correction"] + n["epsilon"]), a, b


def adadelta(n, g, p, a, b):
    g = g + n["weight_decay"] * p
    a = n["beta2"] * a + n["rest2"] * g * g
    step = np.sqrt((b + n["epsilon"]) / (a + n["epsilon"])) * g
    return p - n["rate"] * step, a, n["beta2"] * b + n["rest2"] * step * step


MOMENTS = dict(beta1=0.9, rest1=0.1, beta2=0.99, rest2=0.01, root_correction=0.5, epsilon=1e-6)
OPTIMIZERS = {  # the formula of torch.optim for the new (p, a, b), and numbers
    "Sgd": (sgd, dict(rate=0.1, weight_decay=0.01, momentum=0.9, nesterov=True)),
    "Adam": (adam, dict(rate=0.1, weight_decay=0.01, keep=1) | MOMENTS),
    "AdamW": (adam, dict(rate=0.1, weight_decay=0, keep=0.9) | MOMENTS),
    "Adadelta": (adadelta, dict(rate=0.5, weight_decay=0.01) | MOMENTS)}


@case(6, 1003, 1 << 16, *[(name, states, width) for name, states in (("Sgd", 0), ("Sgd", 1), ("Adam", 2), ("AdamW", 2), ("Adadelta", 2))
                           for width in (1, 4)])
def optimizer(run, count, name, states, width):
    update, numbers = OPTIMIZERS[name]
    state, offset = step_state(run, **numbers), 0 if width == 4 else 4
    p = run.input("parameters", run.normal(count), True, offset)
    a, b = (run.input(f"state_{which}", np.abs(run.normal(count)), True, offset) for which in "ab")
    g = run.input("grads", run.normal(count), False, offset)
    if states < 1:  # a state that is not stored begins at 0
        a.values[:] = 0
    if states < 2:
        b.values[:] = 0
    new = update(numbers, *(array.values.astype(f64) for array in (g, p, a, b)))
    # Three ranges of odd sizes; the kernel has room for 64. first_block: where each begins, then the number of all blocks.
    ends = [0, count // 3 + 1, count // 2, count]
    sizes = [end - begin for begin, end in zip(ends, ends[1:])]
    ranges = [value for begin, size in zip(ends, sizes) for value in (i64(begin), i64(size), i64(1))]
    blocks = [groups_of(size // width + 2, 256) for size in sizes]
    first_block = [sum(blocks[:number]) for number in range(65)]
    run.launch(f"OptimizerUpdate<{name}, {states}, {width}>", sum(blocks), 256, 0, state, *ranges, *[i64(0)] * 3 * 61, *first_block, p, g,
               a if states > 0 else None, b if states > 1 else None)
    for array, expected in zip((p, a, b)[:1 + states], new):
        run.check(array, expected)


@case(3, 1000, 1 << 16, (0.25,), (0.75,))
def average(run, count, share):
    state, averages = step_state(run), run.input("averages", run.normal(count), writable=True)
    state.values["current"]["average_share"] = share
    [values] = run.inputs(values=count)
    expected = (1 - share) * averages.values + share * values.values.astype(f64)
    run.launch("AverageUpdate", *for_each(count), state, values, averages, i64(count))
    run.check(averages, expected)


@case((), (), ())
def lap(run, _):
    members = [("since", "u8"), ("nanoseconds", "u8", 9), ("all_reduces", "i8"), ("all_reduce", "u4", 1 << 15)]
    state = run.input("state", np.zeros(1, members), writable=True)
    for _ in range(2):
        run.launch("EndLap", 1, 1, 0, state, 3)  # an all-reduce
    since, lengths = run.gpu.clock(2), [run.gpu.clock(1), run.gpu.clock(2) - run.gpu.clock(1)]
    for name, expected in (("since", since), ("nanoseconds", np.eye(9)[3] * since), ("all_reduces", 2)):
        run.check(run.gpu.view(name, state.values[name]), expected, 0)
    run.check(run.gpu.view("all_reduce", state.values["all_reduce"][0, :2]), lengths, 0)
