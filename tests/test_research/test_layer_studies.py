# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Layer studies on a tiny model, by definition."""

import layer_figures
import layer_studies as study
import pytest
import torch
import torch.nn.functional as F
from small_models import build, classifier, reduced_model, vit
from small_models import images as noise
from torch.testing import assert_close

from mmclca.datasets.batches import Batch
from mmclca.models.recording import layer_outputs

PLACES = torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0)).double()


@pytest.fixture
def model():
    """Six layers without token reduction, two heads, 4 x 4 patches."""
    return build(classifier(vit(6))).double().eval()


@pytest.fixture
def read():
    """Read the same two batches of four images at each call."""
    found = noise(8).double().split(4)
    return lambda: [Batch(x, [0, 1, 0, 1], [''] * 4) for x in found]


def maps_of(model, read):
    """Attention per layer, (L, N, H, T, T)."""
    found = []
    for batch in read():
        x = model.backbone.embed(batch.images)[0].features
        rows = []
        for layer in model.backbone.layers:
            qkv = layer.attn.qkv(layer.ln1(x)).unflatten(2, (3, 2, 8))
            q, k, _ = qkv.permute(2, 0, 3, 1, 4)
            rows.append((q @ k.mT / 8**0.5).softmax(-1))
            x = layer(x)
        found.append(torch.stack(rows))
    return torch.cat(found, dim=1)


def test_attention_equals_distance_and_entropy_by_hand(model, read):
    seen = maps_of(model, read)
    spread = study.attention(model, read)
    entropy = -(seen * seen.log()).sum(-1).mean((1, 3))
    assert_close(spread['entropy'], entropy)
    patches = seen[..., 1:, 1:]
    far = (PLACES[:, None] - PLACES).norm(dim=-1)
    far = (patches * far).sum(-1) / patches.sum(-1)
    assert_close(spread['distance'], far.mean((1, 3)))


def test_maps_equal_cosines_by_hand(model, read):
    seen = maps_of(model, read).mean(dim=2)[..., 1:, 1:].flatten(2)
    unit = F.normalize(seen, dim=-1)
    pairs = zip(read(), read(), strict=True)
    found = study.maps(model, model, pairs)
    assert_close(found, torch.einsum('lnp,mnp->lm', unit, unit) / 8)
    assert_close(found.diagonal(), torch.ones(6).double())


def test_fourier_equals_amplitudes_by_hand(model, read):
    look = layer_outputs(model, lambda x, left: x[:, 1:])
    with torch.no_grad():
        tokens = [torch.stack(look(batch.images)) for batch in read()]
    grid = torch.cat(tokens, dim=1).unflatten(2, (4, 4))
    size = torch.fft.fft2(grid, dim=(2, 3)).abs().log().mean(dim=(1, 4))
    expected = torch.stack([size[:, i, i] - size[:, 0, 0] for i in range(3)])
    found = study.fourier(model, read)
    assert_close(found['amplitude'], expected)
    assert_close(found['highest'][:, 0], expected[2])


def test_reinit_changes_only_copied_layers(read):
    model = build(classifier(vit(2))).double().eval()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    first, last = study.reinit(model, read).values()
    assert first.shape == last.shape == (3, 1)
    assert first[0] == last[0]
    assert study.reinit(model, read)['last'].equal(last)
    assert all(x.equal(before[name]) for name, x in model.state_dict().items())
    changed = study._reinitialized(model, [1]).backbone.layers
    same = [
        a.ffn.layers[1].weight.equal(b.ffn.layers[1].weight)
        for a, b in zip(changed, model.backbone.layers, strict=True)
    ]
    assert same == [True, False]


def test_pca_ends_at_the_number_of_directions(model, read, monkeypatch):
    drawn = torch.randn(50, 3) @ torch.randn(3, 16)
    monkeypatch.setattr(study, 'image_features', lambda *_: (drawn, []))
    (found,) = study.pca(model, read).values()
    assert found[0] == 0 and found[2] < 0.999
    assert_close(found[3:], torch.ones(14, 1).double())


@pytest.mark.parametrize('reducer', ['ATS', 'SiT'])
def test_studies_support_token_reduction(read, reducer):
    model = reduced_model(reducer)
    spread = study.attention(model, read)
    found = [
        *spread.values(),
        study.maps(model, model, zip(read(), read(), strict=True)),
        study.fourier(model, read)['amplitude'],
        *study.layer_features(model, read(), 'mean')[0],
    ]
    assert all(table.isfinite().all() for table in found)
    assert (spread['distance'] <= 18**0.5).all()


def test_numbers_and_curves_have_a_row_and_color_per_series(
    tmp_path, monkeypatch
):
    tables = dict(distance=torch.tensor([[1.0, 2.0]]))
    tables['first'] = torch.tensor([[3.0], [4.0]])
    layer_figures.write_numbers(tables, tmp_path / 'a.csv')
    lines = (tmp_path / 'a.csv').read_text().splitlines()
    assert lines == ['distance,0,1.0,2.0', 'first,0,3.0', 'first,1,4.0']
    figures = []
    monkeypatch.setattr(
        layer_figures, 'save_figure', lambda figure, _: figures.append(figure)
    )
    draw = layer_figures.draw_curves
    draw(dict(amplitude=torch.rand(3, 12)), '', 'layer')
    draw(dict(distance=torch.rand(5, 12)), '', 'head')
    (layers,), (heads,) = (figure.axes for figure in figures)
    assert len({str(line.get_color()) for line in layers.lines}) == 12
    styles = [line.get_linestyle() for line in heads.lines]
    assert styles == ['None'] * 12 + ['-']


def test_studies_refuse_unsuitable_images(model, read):
    few = build(classifier(vit(6, patch_size=16))).double().eval()
    with pytest.raises(ValueError, match='patches'):
        study.maps(model, few, zip(read(), read(), strict=True))
    narrow = [Batch(batch.images[..., :16], [], []) for batch in read()]
    for one in (study.attention, study.fourier):
        with pytest.raises(ValueError, match='8 patches'):
            one(model, lambda: narrow)
    with pytest.raises(ValueError, match='--split'):
        study.reinit(model, lambda: [Batch(x.images, [], []) for x in read()])
