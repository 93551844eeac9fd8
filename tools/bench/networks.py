"""The networks of bench_step (tools/bench/step.cpp) in PyTorch, and the optimizers that train them."""
import torch


class Residual(torch.nn.Module):
    def __init__(self, channels, wider):
        super().__init__()
        stride = 1 if channels == wider else 2
        self.body = torch.nn.Sequential(torch.nn.Conv2d(channels, wider, 3, stride, 1), torch.nn.BatchNorm2d(wider), torch.nn.ReLU(),
                                        torch.nn.Conv2d(wider, wider, 3, padding=1), torch.nn.BatchNorm2d(wider))
        self.shortcut = torch.nn.Identity() if stride == 1 else torch.nn.Conv2d(channels, wider, 1, stride)

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def modules_of(net):
    """Returns the shape of an image (C, H, W) and the modules. `net` is LAYERS of bench_step."""
    if net == "wide":
        modules, channels = [], 3
        for wider in (32, 64, 128):
            for _ in range(2):
                modules += [torch.nn.Conv2d(channels, wider, 3, padding=1), torch.nn.ReLU()]
                channels = wider
            modules.append(torch.nn.MaxPool2d(2))
        return (3, 32, 32), modules + [torch.nn.Flatten(), torch.nn.Linear(2048, 10)]
    if net in ("residual", "wide_residual"):
        width = channels = 16 if net == "residual" else 32
        modules = [torch.nn.Conv2d(3, width, 3, padding=1), torch.nn.BatchNorm2d(width), torch.nn.ReLU()]
        for wider in (width, width, 2 * width, 2 * width, 4 * width, 4 * width):
            modules.append(Residual(channels, wider))
            channels = wider
        return (3, 32, 32), modules + [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(channels, 10)]
    modules, channels = [], 1
    for _ in range(int(net)):
        modules += [torch.nn.Conv2d(channels, 10, 3, padding=1), torch.nn.ReLU()]
        channels = 10
    return (1, 28, 28), modules + [torch.nn.Flatten(), torch.nn.Linear(7840, 10)]


def optimizer_of(net, parameters, **of_adadelta):
    """Returns the optimizer that bench_step has for `net`, with PyTorch's default implementation for the device."""
    if net == "wide_residual":
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    return torch.optim.Adadelta(parameters, lr=0.1, **of_adadelta)
