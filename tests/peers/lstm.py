# SPDX-License-Identifier: GPL-3.0-or-later
"""The language models of Zaremba et al. 2014: two LSTM layers, with the names of PyTorch's word_language_model."""
from torch import nn


class LSTM(nn.Module):
    def __init__(self, vocabulary, width, p=0.0):
        super().__init__()
        self.encoder = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, width, num_layers=2, batch_first=True, dropout=p)
        self.drop = nn.Dropout(p)
        self.decoder = nn.Linear(width, vocabulary)

    def forward(self, ids):
        return self.decoder(self.drop(self.rnn(self.drop(self.encoder(ids)))[0]))
