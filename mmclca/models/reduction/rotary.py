# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Rotary position embeddings, which travel with the tokens.

`RoFormer: Enhanced Transformer with Rotary Position Embedding`, in two
dimensions: attention rotates pairs of channels of a query and a key by angles
that are linear in the coordinates of the patch.

Shapes as in ``tokens.py``; L layers, or 1 if all have the same angles; h
heads, or 1 if all have the same angles.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import Attended, RotatedAttended


def _sign(half: bool, like: Tensor) -> Tensor:
    """Return the sign for the sine per channel, (D,).

    The rotation subtracts the second channel in a pair from the first one.
    """
    half_dims = like.size(-1) // 2
    sign = torch.tensor([[-1.0], [1.0]], dtype=like.dtype, device=like.device)
    sign = sign.expand(2, half_dims)
    return (sign if half else sign.T).flatten()


@dataclass
class PatchRows:
    """The patch per token, a row in a table with sines and cosines.

    Args:
        index (Tensor): Row per token, (N,) or (B, N); ``none`` for tokens
            without a position.
        none (int): The last row, which rotates nothing.
    """

    index: Tensor
    none: int

    @classmethod
    def at_patches(cls, num_prefix: int, table: Tensor) -> 'PatchRows':
        """Return the rows for a prefix and all patches.

        Args:
            num_prefix (int): Tokens before the patches.
            table (Tensor): Rows of the patches and a last row, (..., P + 1,
                2 D); of each image in turn, if images have different patches.
        """
        none = table.size(-2) - 1
        index = torch.arange(none, device=table.device)
        return cls(F.pad(index, (num_prefix, 0), value=none), none)

    def look_up(self, table: Tensor) -> Tensor:
        """Return the rows for all tokens, (h, N, 2 D) or (B, h, N, 2 D)."""
        return table[:, self.index].movedim(0, -3)

    @torch.no_grad()
    def reduce(self, record: Any, num_prefix: int, batch: int) -> 'PatchRows':
        """Give a merged token the row of its largest member with a row."""
        index = self.index.expand(batch, -1)
        members = record.largest_members(index != self.none)
        index = F.pad(index, (0, 1), value=self.none).gather(1, members)
        index = F.pad(index[:, num_prefix:], (num_prefix, 0), value=self.none)
        return PatchRows(index, self.none)

    def append(self, num_new: int) -> 'PatchRows':
        """Append tokens without a position."""
        index = F.pad(self.index, (0, num_new), value=self.none)
        return PatchRows(index, self.none)


@dataclass
class Coordinates:
    """The mean patch coordinates in each token.

    Args:
        places (Tensor): Two coordinates and 1, or zeros for tokens without a
            position, which rotate nothing; (N, 3) or (B, N, 3).
    """

    places: Tensor

    @classmethod
    def at_patches(cls, num_prefix: int, places: Tensor) -> 'Coordinates':
        """Return the coordinates for a prefix and all patches.

        Args:
            num_prefix (int): Tokens before the patches.
            places (Tensor): Patch coordinates, (P, 2).
        """
        places = F.pad(places, (0, 1), value=1.0)
        return cls(F.pad(places, (0, 0, num_prefix, 0)))

    def look_up(self, frequencies: Tensor) -> Tensor:
        """Return sine and cosine for all tokens, (h, N, 2 D) or (B, ...).

        Args:
            frequencies (Tensor): Angles per unit of both coordinates, (h, 2,
                D).
        """
        first, second, _ = self.places.unsqueeze(-3).split(1, dim=-1)
        per_first, per_second = frequencies.unsqueeze(-2).unbind(1)
        angles = first * per_first + second * per_second
        return torch.cat((angles.sin(), angles.cos()), dim=-1)

    def reduce(
        self, record: Any, num_prefix: int, batch: int
    ) -> 'Coordinates':
        """Give a merged token the weighted mean of its members' places."""
        places = self.places.expand(batch, -1, -1)
        places = record.apply(places)[:, num_prefix:]
        total = places[..., 2:]
        places = places / total.where(total > 0, 1.0)
        return Coordinates(F.pad(places, (0, 0, num_prefix, 0)))

    def append(self, num_new: int) -> 'Coordinates':
        """Append tokens without a position."""
        return Coordinates(F.pad(self.places, (0, 0, 0, num_new)))


class Rotary:
    """Rotations of queries and keys in a layer, by the patch of each token.

    The prefix, cached tokens and registers have no position: they are not
    rotated.

    Args:
        positions (PatchRows | Coordinates): Position per token.
        tables (Tensor): What ``positions.look_up`` needs for each layer,
            (L, h, ...).
        half (bool): Whether a pair is a channel of the first half and one of
            the second; otherwise neighbors.
        keys (str): Keys that reducers compare: 'content', before the
            rotation, or 'rotated'.
        layer (int): Layer whose angles to use. Defaults to 0.
    """

    def __init__(
        self,
        positions: PatchRows | Coordinates,
        tables: Tensor,
        half: bool,
        keys: str,
        layer: int = 0,
    ):
        self.positions = positions
        self.tables = tables
        self.half = half
        self.keys = keys
        self.layer = layer
        rows = positions.look_up(tables[layer])
        self.sine, self.cosine = rows.chunk(2, dim=-1)

    @classmethod
    def with_rows(
        cls, rows: Tensor, num_prefix: int, half: bool, keys: str
    ) -> 'Rotary':
        """Create rotations by a model's sines and cosines.

        A merged token takes the row of its member with the largest weight, of
        equals the first.

        Args:
            rows (Tensor): Sine and cosine of all channels, per patch, (L, h,
                P, 2 D); (L, B, h, P, 2 D) if images have different patches.
            num_prefix (int): Tokens before the patches.
            half (bool): See :class:`Rotary`.
            keys (str): See :class:`Rotary`.
        """
        images = rows.size(1) if rows.dim() == 5 else None
        if images:
            rows = rows.transpose(1, 2).flatten(2, 3)
        sine, cosine = rows.chunk(2, dim=-1)
        sine = F.pad(sine * _sign(half, sine), (0, 0, 0, 1))
        cosine = F.pad(cosine, (0, 0, 0, 1), value=1.0)
        tables = torch.cat((sine, cosine), dim=-1)
        if not images:
            positions = PatchRows.at_patches(num_prefix, tables)
        else:
            positions = PatchRows.at_patches(0, tables)
            index = positions.index.unflatten(0, (images, -1))
            none = positions.none
            index = F.pad(index, (num_prefix, 0), value=none)
            positions = PatchRows(index, none)
        return cls(positions, tables, half, keys)

    @classmethod
    def with_coordinates(
        cls,
        places: Tensor,
        frequencies: Tensor,
        num_prefix: int,
        half: bool,
        keys: str,
    ) -> 'Rotary':
        """Create rotations by coordinates.

        A merged token has the weighted mean coordinates from its members.

        Args:
            places (Tensor): Patch coordinates, (P, 2).
            frequencies (Tensor): Angles of all channels per unit of both
                coordinates, (L, h, 2, D).
            num_prefix (int): Tokens before the patches.
            half (bool): See :class:`Rotary`.
            keys (str): See :class:`Rotary`.
        """
        frequencies = frequencies * _sign(half, frequencies)
        positions = Coordinates.at_patches(num_prefix, places)
        return cls(positions, frequencies, half, keys)

    def rotate(self, x: Tensor) -> Tensor:
        """Rotate queries or keys, (B, H, N, D)."""
        if self.half:
            partner = x.roll(x.size(-1) // 2, dims=-1)
        else:
            partner = x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
        return x * self.cosine + partner * self.sine

    def attended(
        self, q: Tensor, k: Tensor, v: Tensor, key_bias: Tensor | None
    ) -> Attended:
        """Rotate queries and keys of a layer."""
        # as in timm, sine and cosine may be more precise than queries
        rotated_q, rotated_k = (self.rotate(x).type_as(v) for x in (q, k))
        rotated = Attended(rotated_q, rotated_k, v, key_bias)
        if self.keys == 'rotated':
            return rotated
        return RotatedAttended(rotated, k)

    def at_layer(self, layer: int) -> 'Rotary':
        """Return the rotations for another layer."""
        return Rotary(self.positions, self.tables, self.half, self.keys, layer)

    def _with_positions(self, positions: PatchRows | Coordinates) -> 'Rotary':
        return Rotary(positions, self.tables, self.half, self.keys, self.layer)

    def reduce(self, record: Any, num_prefix: int, batch: int) -> 'Rotary':
        """Apply a reduction, see :meth:`Tokens.reduce`."""
        positions = self.positions.reduce(record, num_prefix, batch)
        return self._with_positions(positions)

    def append(self, num_new: int) -> 'Rotary':
        """Append tokens without a position."""
        return self._with_positions(self.positions.append(num_new))
