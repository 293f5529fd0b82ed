# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks of today, as their authors' PyTorch code has them: ViT and Mixer with timm's names, LLaMA with those of
Hugging Face, Mamba (Gu and Dao 2023) written step by step, a GRU language model, M5 on raw sound, a neural ODE, a
variational autoencoder, SimCLR and a perceptron over tables."""
import torch
from torch import nn
from torch.nn import functional as F

from attention import attend


class MLP(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Patches(nn.Module):
    def __init__(self, width, patch):
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class ViTAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).reshape(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        return self.proj(attend(q, k, v).transpose(1, 2).reshape(B, T, C))


class ViTLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = ViTAttention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = MLP(width, 4 * width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, width, heads, layers, size, patch, classes):
        super().__init__()
        self.patch_embed = Patches(width, patch)
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(ViTLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patch_embed(x)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class MixerLayer(nn.Module):
    def __init__(self, width, tokens):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.mlp_tokens = MLP(tokens, width // 2)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp_channels = MLP(width, 4 * width)

    def forward(self, x):
        x = x + self.mlp_tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp_channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, width, layers, size, patch, classes):
        super().__init__()
        self.stem = Patches(width, patch)
        self.blocks = nn.ModuleList(MixerLayer(width, (size // patch) ** 2) for _ in range(layers))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


def rope(x, base):
    T, D = x.shape[-2:]
    frequency = base ** (-torch.arange(0, D, 2, dtype=x.dtype) / D)
    angle = torch.arange(T, dtype=x.dtype)[:, None] * frequency
    a, b = x.chunk(2, -1)
    c, s = angle.cos(), angle.sin()
    return torch.cat([a * c - b * s, b * c + a * s], -1)


class LlamaAttention(nn.Module):
    def __init__(self, width, heads, kv_heads, base):
        super().__init__()
        self.heads, self.kv_heads, self.base = heads, kv_heads, base
        d = width // heads
        self.q_proj = nn.Linear(width, heads * d, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * d, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * d, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q = self.q_proj(x).view(B, T, self.heads, -1).transpose(1, 2)
        k = self.k_proj(x).view(B, T, self.kv_heads, -1).transpose(1, 2)
        v = self.v_proj(x).view(B, T, self.kv_heads, -1).transpose(1, 2)
        q, k = rope(q, self.base), rope(k, self.base)
        k, v = (t.repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
        return self.o_proj(attend(q, k, v, causal=True).transpose(1, 2).reshape(B, T, C))


class LlamaMLP(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaLayer(nn.Module):
    def __init__(self, width, hidden, heads, kv_heads, base):
        super().__init__()
        self.input_layernorm = RMSNorm(width, 1e-5)
        self.self_attn = LlamaAttention(width, heads, kv_heads, base)
        self.post_attention_layernorm = RMSNorm(width, 1e-5)
        self.mlp = LlamaMLP(width, hidden)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaDecoder(nn.Module):
    def __init__(self, vocabulary, width, hidden, layers, heads, kv_heads, base):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaLayer(width, hidden, heads, kv_heads, base) for _ in range(layers))
        self.norm = RMSNorm(width, 1e-5)

    def forward(self, ids):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Llama(nn.Module):
    def __init__(self, vocabulary, width, hidden, layers, heads, kv_heads, base):
        super().__init__()
        self.model = LlamaDecoder(vocabulary, width, hidden, layers, heads, kv_heads, base)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        return self.lm_head(self.model(ids))


class MambaMixer(nn.Module):
    def __init__(self, width, state):
        super().__init__()
        inner, self.rank, self.state = 2 * width, (width + 15) // 16, state
        self.A_log = nn.Parameter(torch.arange(1.0, state + 1).log().expand(inner, state).clone())
        self.D = nn.Parameter(torch.ones(inner))
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, 4, padding=3, groups=inner)
        self.x_proj = nn.Linear(inner, self.rank + 2 * state, bias=False)
        self.dt_proj = nn.Linear(self.rank, inner)
        self.out_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        T = x.shape[1]
        x, gate = self.in_proj(x).chunk(2, -1)
        x = F.silu(self.conv1d(x.transpose(1, 2))[..., :T].transpose(1, 2))
        dt, B, C = self.x_proj(x).split([self.rank, self.state, self.state], -1)
        dt, A = F.softplus(self.dt_proj(dt)), -self.A_log.exp()
        h, ys = torch.zeros_like(x[:, 0, :, None] * A), []
        for t in range(T):
            h = torch.exp(dt[:, t, :, None] * A) * h + (dt[:, t] * x[:, t])[..., None] * B[:, t, None]
            ys.append((h * C[:, t, None]).sum(-1))
        return self.out_proj((torch.stack(ys, 1) + x * self.D) * F.silu(gate))


class MambaLayer(nn.Module):
    def __init__(self, width, state):
        super().__init__()
        self.norm = RMSNorm(width, 1e-5)
        self.mixer = MambaMixer(width, state)

    def forward(self, x):
        return x + self.mixer(self.norm(x))


class MambaBackbone(nn.Module):
    def __init__(self, vocabulary, width, depth, state):
        super().__init__()
        self.embeddings = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(MambaLayer(width, state) for _ in range(depth))
        self.norm_f = RMSNorm(width, 1e-5)

    def forward(self, ids):
        x = self.embeddings(ids)
        for layer in self.layers:
            x = layer(x)
        return self.norm_f(x)


class Mamba(nn.Module):
    def __init__(self, vocabulary, width, depth, state):
        super().__init__()
        self.backbone = MambaBackbone(vocabulary, width, depth, state)

    def forward(self, ids):
        return self.backbone(ids) @ self.backbone.embeddings.weight.T


class GRULayer(nn.Module):
    """nn.GRU of one layer, with names of its own."""

    def __init__(self, width):
        super().__init__()
        self.weight_ih = nn.Parameter(torch.randn(3 * width, width) * width**-0.5)
        self.weight_hh = nn.Parameter(torch.randn(3 * width, width) * width**-0.5)
        self.bias_ih = nn.Parameter(torch.zeros(3 * width))
        self.bias_hh = nn.Parameter(torch.zeros(3 * width))

    def forward(self, x):
        weights = [self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh]
        h = torch.zeros_like(x[:, :1]).transpose(0, 1)
        return torch.gru(x, h.contiguous(), weights, True, 1, 0.0, False, False, True)[0]


class GRU(nn.Module):
    def __init__(self, vocabulary, width, layers):
        super().__init__()
        self.encoder = nn.Embedding(vocabulary, width)
        self.rnn = nn.ModuleDict({f"l{i}": GRULayer(width) for i in range(layers)})
        self.decoder = nn.Linear(width, vocabulary)

    def forward(self, ids):
        x = self.encoder(ids)
        for layer in self.rnn.values():
            x = layer(x)
        return self.decoder(x)


class Slope(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.l1 = nn.Linear(width, width)
        self.l2 = nn.Linear(width, width)

    def forward(self, h, t):
        return self.l2(torch.tanh(self.l1(h) + t))


class ODE(nn.Module):
    """torchdiffeq's rk4 on dh/dt = f(h, t)."""

    def __init__(self, width, steps):
        super().__init__()
        self.steps = steps
        self.down = nn.Linear(784, width)
        self.step = nn.ModuleDict({"f": Slope(width)})
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        h, dt, f = self.down(x), 1 / self.steps, self.step["f"]
        for k in range(self.steps):
            t = k * dt
            k1 = f(h, t)
            k2 = f(h + k1 * (dt / 2), t + dt / 2)
            k3 = f(h + k2 * (dt / 2), t + dt / 2)
            k4 = f(h + k3 * dt, t + dt)
            h = h + (k1 + k2 * 2 + k3 * 2 + k4) * (dt / 6)
        return self.head(h)


class Generator(nn.Module):
    """pytorch/examples/dcgan, as its discriminator."""

    def __init__(self, nz, width):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, 8 * width, 4, 1, 0, bias=False), nn.BatchNorm2d(8 * width), nn.ReLU(),
            nn.ConvTranspose2d(8 * width, 4 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * width), nn.ReLU(),
            nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2),
            nn.Conv2d(2 * width, 4 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * width), nn.LeakyReLU(0.2),
            nn.Conv2d(4 * width, 8 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(8 * width), nn.LeakyReLU(0.2),
            nn.Conv2d(8 * width, 1, 4, 1, 0, bias=False))

    def forward(self, x):
        return self.main(x)


class GAN(nn.Module):
    def __init__(self, nz, width):
        super().__init__()
        self.netG = Generator(nz, width)
        self.netD = Discriminator(width)


class M5(nn.Module):
    """PyTorch's tutorial on Speech Commands."""
    def __init__(self, classes=35, width=32):
        super().__init__()
        self.conv1 = nn.Conv1d(1, width, 80, stride=16)
        self.bn1 = nn.BatchNorm1d(width)
        self.conv2 = nn.Conv1d(width, width, 3)
        self.bn2 = nn.BatchNorm1d(width)
        self.conv3 = nn.Conv1d(width, 2 * width, 3)
        self.bn3 = nn.BatchNorm1d(2 * width)
        self.conv4 = nn.Conv1d(2 * width, 2 * width, 3)
        self.bn4 = nn.BatchNorm1d(2 * width)
        self.fc1 = nn.Linear(2 * width, classes)

    def forward(self, x):
        x = F.max_pool1d(F.relu(self.bn1(self.conv1(x))), 4)
        x = F.max_pool1d(F.relu(self.bn2(self.conv2(x))), 4)
        x = F.max_pool1d(F.relu(self.bn3(self.conv3(x))), 4)
        x = F.max_pool1d(F.relu(self.bn4(self.conv4(x))), 4)
        return self.fc1(x.mean(2))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


class VAE(nn.Module):
    """pytorch/examples/vae, whose decoder ends here before the sigmoid."""

    def __init__(self, hidden=400, latent=20):
        super().__init__()
        self.fc1 = nn.Linear(784, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, 784)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        return self.fc4(F.relu(self.fc3(z))), mu, logvar


class BasicBlock(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = nn.Sequential()
        if stride != 1 or channels != width:
            self.downsample = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.downsample(x))


class SimCLR(nn.Module):
    """A ResNet-18 for small pictures, with torchvision's names, and a projection head."""

    def __init__(self, features=128):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(BasicBlock(64, 64, 1), BasicBlock(64, 64, 1))
        self.layer2 = nn.Sequential(BasicBlock(64, 128, 2), BasicBlock(128, 128, 1))
        self.layer3 = nn.Sequential(BasicBlock(128, 256, 2), BasicBlock(256, 256, 1))
        self.layer4 = nn.Sequential(BasicBlock(256, 512, 2), BasicBlock(512, 512, 1))
        self.fc = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, features))

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def similarities(z, temperature):
    z = F.normalize(z)
    return (z @ z.T / temperature).fill_diagonal_(-torch.inf)


class Embeddings(nn.ModuleList):
    """CategoricalEmbeddings of rtdl_revisiting_models (Gorishniy et al. 2021)."""

    def __init__(self, rows, width):
        super().__init__(nn.Embedding(n, width) for n in rows)

    def forward(self, codes):
        return torch.cat([table(c) for table, c in zip(self, codes)], 1)


class TabularBlock(nn.Module):
    def __init__(self, inputs, width, p):
        super().__init__()
        self.linear = nn.Linear(inputs, width)
        self.dropout = nn.Dropout(p)

    def forward(self, x):
        return self.dropout(F.relu(self.linear(x)))


class TabularMLP(nn.Module):
    def __init__(self, numbers, rows, embedding, width, depth, p=0.1):
        super().__init__()
        self.embeddings = Embeddings(rows, embedding)
        inputs = numbers + len(rows) * embedding
        self.blocks = nn.ModuleList(TabularBlock(width if i else inputs, width, p) for i in range(depth))
        self.output = nn.Linear(width, 2)

    def forward(self, number, one_hot, *codes):
        x = torch.cat([number, one_hot, self.embeddings(codes)], 1)
        for block in self.blocks:
            x = block(x)
        return self.output(x)
