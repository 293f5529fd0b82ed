# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks of torchvision at the sizes of the test."""
import torchvision
from torch import nn
from torchvision.models.vgg import cfgs, make_layers


def zoo(name, **settings):
    """A network of torchvision with its own initial weights."""
    return getattr(torchvision.models, name)(weights=None, num_classes=10, **settings)


def without_dropout(module):
    """torchvision 0.14's efficientnet takes no argument for it."""
    for m in module.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    return module


class VGG(nn.Module):
    """torchvision's VGG with hidden layers of any width: its own, of 4096, are 120 million weights."""

    def __init__(self, configuration, hidden, classes):
        super().__init__()
        self.features = make_layers(cfgs[configuration])
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(nn.Linear(512 * 7 * 7, hidden), nn.ReLU(), nn.Dropout(0.0),
                                        nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(0.0),
                                        nn.Linear(hidden, classes))

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))
