"""What exported_network.py expects in model.py: the classes and layers that a person would write for its networks."""
SOURCES = {
    "layers": '''
class PaddedConv2d(nn.Conv2d):
    """A convolution with one more row and column of zeros below and on the right than on the other sides."""

    def forward(self, x):
        return super().forward(nn.functional.pad(x, (0, 1, 0, 1)))


class Network(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(),  # 6 x 17 x 17
            PaddedConv2d(6, 6, 4, padding=1), nn.LeakyReLU(),
            PaddedConv2d(6, 6, 4, padding=1), nn.LeakyReLU(),
            PaddedConv2d(6, 6, 2, stride=2), nn.SiLU(),  # 6 x 9 x 9
            nn.BatchNorm2d(6, eps=0.001, momentum=0.3), nn.GELU(),
            nn.Conv2d(6, 8, 3, groups=2), nn.Sigmoid(),  # 8 x 7 x 7
            nn.Conv2d(8, 16, 3, padding=2, dilation=2, groups=8),  # 16 x 7 x 7
            nn.GroupNorm(1, 16, eps=0.01), nn.Tanh(),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.MaxPool2d(3, stride=1, padding=1),
            nn.AvgPool2d(2, stride=1, padding=1),  # 16 x 8 x 8
            nn.Flatten(),
            nn.Linear(16 * 8 * 8, 20), nn.LeakyReLU(),  # 20
            nn.LayerNorm(20),
            nn.BatchNorm1d(20), nn.Tanh(),
            nn.Linear(20, 10),  # 10
        )
''',
    "blocks": '''
class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, 6, 3, padding=1),
            nn.BatchNorm2d(6), nn.ReLU(),
            nn.Conv2d(6, 6, 3, padding=1),
            nn.BatchNorm2d(6),
        )
        self.shortcut = nn.Identity() if channels == 6 else nn.Conv2d(channels, 6, 1)

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


class ResidualBlock2(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, 8, 3, stride=2, padding=1, groups=2), nn.Tanh(),
            nn.GroupNorm(1, 8),
        )
        self.shortcut = nn.Conv2d(channels, 8, 1, stride=2)

    def forward(self, x):
        return nn.functional.silu(self.body(x) + self.shortcut(x))


class DenseBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.Conv2d(channels, 4, 3, padding=1), nn.ReLU(),
        )

    def forward(self, x):
        return torch.tanh(torch.cat([x, self.body(x)], 1))


class DenseBlock2(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, 10, 1), nn.Tanh(),
        )

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


class ResidualBlock3(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            DenseBlock2(channels),
            nn.Conv2d(channels + 10, 12, 1), nn.ReLU(),
        )
        self.shortcut = nn.Identity() if channels == 12 else nn.Conv2d(channels, 12, 1)

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, 16, 1),
        )

    def forward(self, x):
        return nn.functional.leaky_relu(self.body(x))


class ResidualBlock4(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(channels, 20), nn.GELU(),
            nn.LayerNorm(20),
        )
        self.shortcut = nn.Identity() if channels == 20 else nn.Linear(channels, 20)

    def forward(self, x):
        return nn.functional.gelu(self.body(x) + self.shortcut(x))


class ResidualBlock5(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(channels, 20), nn.ReLU(),
        )
        self.shortcut = nn.Identity() if channels == 20 else nn.Linear(channels, 20)

    def forward(self, x):
        return torch.sigmoid(self.body(x) + self.shortcut(x))


class Network(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 4, 3, padding=1),  # 4 x 17 x 17
            ResidualBlock(4),  # 6 x 17 x 17
            *(ResidualBlock(6) for _ in range(5)),
            ResidualBlock2(6),  # 8 x 9 x 9
            DenseBlock(8),  # 12 x 9 x 9
            DenseBlock(12),  # 16 x 9 x 9
            DenseBlock(16),  # 20 x 9 x 9
            ResidualBlock3(20),  # 12 x 9 x 9
            ResidualBlock3(12),
            Block(12),  # 16 x 9 x 9
            nn.AdaptiveAvgPool2d(1),  # 16
            nn.Flatten(),
            ResidualBlock4(16),  # 20
            ResidualBlock4(20),
            ResidualBlock5(20),
            nn.Linear(20, 10),  # 10
        )
''',
    "genes": '''
class Network(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 4, 5, padding=2), nn.Tanh(),  # 4 x 17 x 17
            *(module for _ in range(4) for module in (nn.Conv2d(4, 4, 5, padding=2), nn.Tanh())),
            nn.MaxPool2d(3, stride=2),  # 4 x 8 x 8
            nn.GroupNorm(1, 4),
            nn.Dropout(0.125),
            nn.Dropout(0.5),
            nn.Flatten(),
            nn.Linear(4 * 8 * 8, 10),  # 10
        )
''',
}
