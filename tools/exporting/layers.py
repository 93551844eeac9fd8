"""Writes the layers of a network as Python source with modules of torch.nn."""
import dataclasses

INDENT = " " * 12
FEWEST_JOINED = 4  # equal layers that become one line with a loop

ACTIVATIONS = {  # module and function
    "relu": ("nn.ReLU()", "torch.relu"),
    "sigmoid": ("nn.Sigmoid()", "torch.sigmoid"),
    "tanh": ("nn.Tanh()", "torch.tanh"),
    "leaky_relu": ("nn.LeakyReLU()", "nn.functional.leaky_relu"),
    "gelu": ("nn.GELU()", "nn.functional.gelu"),
    "silu": ("nn.SiLU()", "nn.functional.silu"),
}

# The source of classes that torch.nn lacks, from their base class on.
PADDED_CONV = '''(nn.Conv2d):
    """A convolution with one more row and column of zeros below and on the right than on the other sides."""

    def forward(self, x):
        return super().forward(nn.functional.pad(x, (0, 1, 0, 1)))
'''
PIXEL_LINEAR = '''(nn.Linear):
    """A linear layer for images of one pixel, (N, channels, 1, 1)."""

    def forward(self, x):
        return super().forward(x.flatten(1))[:, :, None, None]
'''


def number(value):
    """Returns a number as short as possible: 0.5, 1, 1e-05."""
    return repr(value).removesuffix(".0")


def option(name, value, default):
    """Returns ", name=value", or nothing if the value is PyTorch's default."""
    return "" if value == default else f", {name}={value if isinstance(value, str) else number(value)}"


def joined(modules, count):
    """Returns the modules as arguments, `count` times."""
    if count == 1:
        return ", ".join(modules)
    if len(modules) == 1:
        return f"*({modules[0]} for _ in range({count}))"
    return f"*(module for _ in range({count}) for module in ({', '.join(modules)}))"


@dataclasses.dataclass(frozen=True)
class Flow:
    """The output of the last layer."""
    channels: str  # their number, or an expression with the argument `channels` of the block's class
    shape: tuple  # height, width, channels
    is_flat: bool = False  # (N, features), otherwise (N, channels, height, width)

    @property
    def features(self):
        """Returns the number of features of a flat value as an expression: "10 * 28 * 28"."""
        height, width, _ = self.shape
        factor = f"({self.channels})" if "+" in self.channels else self.channels
        return self.channels if height * width == 1 else f"{factor} * {height} * {width}"

    @property
    def comment(self):
        height, width, channels = self.shape
        return f"  # {channels}" if height * width == 1 else f"  # {channels} x {height} x {width}"


class Layers:
    """The layers of a network as Python source.

    `model` is the list of layers in the words of the configuration, every key with its value, as in the recipe of
    `finch show RUN ID --json`. `shape` is the shape (height, width, channels) of an image.
    """

    def __init__(self, model, shape, outputs):
        self.outputs = outputs
        self.named_classes = []  # (name, source), in the order of their definition
        self.now = Flow(str(shape[2]), tuple(shape))
        self.modules = ""
        before = self.now.shape
        for modules, flow, count in self.lines_of(model):
            self.modules += f"{INDENT}{joined(modules, count)},{'' if flow.shape == before else flow.comment}\n"
            before = flow.shape
        if self.now.shape != (1, 1, outputs):
            raise ValueError(f"the layers give {self.now.shape}, not {outputs} outputs")

    @property
    def classes(self):
        """The classes of blocks and of layers that torch.nn lacks, each followed by two empty lines."""
        return "".join(f"class {name}{source}\n\n" for name, source in self.named_classes)

    def lines_of(self, model):
        """Returns the modules of each layer, the flow after it, and a count: many equal layers in a row become one."""
        lines = []
        for layer in model:
            (kind, options), = layer.items() if isinstance(layer, dict) else [(layer, {})]
            options = options if isinstance(options, dict) else {kind: options}  # activation: relu
            for _ in range(options.get("repeat", 1)):
                modules = getattr(self, kind)(options)
                if modules:
                    lines.append((modules, self.now))
        shorter = []
        while lines:
            same = next((place for place, line in enumerate(lines) if line[0] != lines[0][0]), len(lines))
            shorter += [(lines[0][0], lines[same - 1][1], same)] if same >= FEWEST_JOINED else [(*line, 1) for line in lines[:same]]
            lines = lines[same:]
        return shorter

    def move(self, channels, shape=None, **changes):
        self.now = dataclasses.replace(self.now, channels=channels, shape=shape or self.now.shape, **changes)

    def slide(self, kernel, stride, padding):
        """Returns height and width after a window of `kernel` pixels, with `padding` pixels on both sides together."""
        return tuple((size + padding - kernel) // stride + 1 for size in self.now.shape[:2])

    # A layer: returns its modules, and moves on to its output.

    def conv(self, layer):
        before, kernel, dilation, stride = self.now, layer["kernel"], layer["dilation"], layer["stride"]
        reach = dilation * (kernel - 1)
        is_same = layer["padding"] == "same"
        padding, both = (reach // 2, reach) if is_same else (layer["padding"], 2 * layer["padding"])
        self.move(str(layer["channels"]), (*self.slide(reach + 1, stride, both), layer["channels"]))
        name = "nn.Conv2d" if both == 2 * padding else self.class_name("PaddedConv2d", PADDED_CONV)
        groups = before.channels if layer["groups"] == "depthwise" else str(layer["groups"])
        return self.activated(f"{name}({before.channels}, {self.now.channels}, {kernel}{option('stride', stride, 1)}{option('padding', padding, 0)}"
                              f"{option('dilation', dilation, 1)}{option('groups', groups, '1')})", layer)

    def pool(self, name, layer):
        kernel, padding = layer["kernel"], layer["padding"]
        stride = kernel if layer["stride"] == "kernel" else layer["stride"]
        self.move(self.now.channels, (*self.slide(kernel, stride, 2 * padding), self.now.shape[2]))
        return [f"{name}({kernel}{option('stride', stride, kernel)}{option('padding', padding, 0)})"]

    def max_pool(self, layer):
        return self.pool("nn.MaxPool2d", layer)

    def average_pool(self, layer):
        return self.pool("nn.AvgPool2d", layer)

    def global_average_pool(self, _):
        self.move(self.now.channels, (1, 1, self.now.shape[2]))
        return ["nn.AdaptiveAvgPool2d(1)"]

    def flatten(self, _):
        self.move(self.now.channels, is_flat=True)
        return ["nn.Flatten()"]

    def linear(self, layer):
        before, units = self.now, self.outputs if layer["units"] == "classes" else layer["units"]
        self.move(str(units), (1, 1, units))
        name = "nn.Linear" if before.is_flat else self.class_name("PixelLinear", PIXEL_LINEAR)
        return self.activated(f"{name}({before.features}, {units})", layer)

    def activation(self, layer):
        return [ACTIVATIONS[layer["activation"]][0]] if layer["activation"] != "none" else []

    def activated(self, module, layer):
        return [module, *self.activation(layer)]

    def batch_norm(self, layer):
        name = "nn.BatchNorm1d" if self.now.is_flat else "nn.BatchNorm2d"
        return self.activated(f"{name}({self.now.channels}{option('eps', layer['epsilon'], 1e-5)}{option('momentum', layer['momentum'], 0.1)})", layer)

    def layer_norm(self, layer):
        name = "nn.LayerNorm(" if self.now.is_flat else "nn.GroupNorm(1, "
        return self.activated(f"{name}{self.now.channels}{option('eps', layer['epsilon'], 1e-5)})", layer)

    def dropout(self, layer):
        return [f"nn.Dropout({number(layer['rate'])})"]

    def block(self, layer):
        channels = self.now.channels
        self.move("channels")
        source = self.block_source(layer)
        is_general = "channels" in source
        base = "Block" if not layer["residual"] else "ResidualBlock" if layer["join"] == "add" else "DenseBlock"
        name = self.class_name(base, f"(nn.Module):\n    def __init__(self{', channels' * is_general}):\n{source}")
        if not self.now.channels.isdigit() and channels != "channels":  # an expression of the class that was just written
            self.move(str(self.now.shape[2]))
        return [f"{name}({channels if is_general else ''})"]

    def block_source(self, layer):
        """Returns the source of the class of a block from its __init__ on."""
        before = self.now
        lines = "".join(f"\n{INDENT}{joined(modules, count)}," for modules, _, count in self.lines_of(layer["layers"]))
        source = f"        super().__init__()\n        self.body = nn.Sequential({lines}" + ("\n        )\n" if lines else ")\n")
        result = "self.body(x)"
        if layer["residual"] and layer["join"] == "add":
            source += f"        self.shortcut = {self.shortcut(before)}\n"
            result = "self.body(x) + self.shortcut(x)"
        elif layer["residual"]:
            self.move(f"{before.channels} + {self.now.channels}", (*self.now.shape[:2], before.shape[2] + self.now.shape[2]))
            result = "torch.cat([x, self.body(x)], 1)"
        if layer["activation"] != "none":
            result = f"{ACTIVATIONS[layer['activation']][1]}({result})"
        return f"{source}\n    def forward(self, x):\n        return {result}\n"

    def shortcut(self, before):
        """Returns the module that converts the block's input `before` to the shape of its body's output."""
        body = self.now
        if body.is_flat != before.is_flat:
            return "nn.Flatten()"
        if (body.channels, body.shape) == (before.channels, before.shape):
            return "nn.Identity()"
        stride = -(-before.shape[0] // body.shape[0])
        module = (f"nn.Linear({before.features}, {body.channels})" if body.is_flat else
                  f"nn.Conv2d({before.channels}, {body.channels}, 1{option('stride', stride, 1)})")
        is_general = body.shape[:2] == before.shape[:2] and body.channels.isdigit()
        return f"nn.Identity() if {before.channels} == {body.channels} else {module}" if is_general else module

    def class_name(self, base, source):
        """Returns the name of the class with this source; adds the class if there is none."""
        of_base = [one for one in self.named_classes if one[0].startswith(base)]
        name = next((name for name, other in of_base if other == source), None)
        if name is None:
            name = base + (str(len(of_base) + 1) if of_base else "")
            self.named_classes.append((name, source))
        return name
