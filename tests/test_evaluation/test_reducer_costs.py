# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tokens, multiply-accumulates and parameters of every method."""

from itertools import product

import pytest
import torch
from pairwise import cases
from test_cost import vit

from mmclca.cli.commands.get_flops import rows
from mmclca.evaluation.cost import count, count_config
from mmclca.models import TokenReducer
from mmclca.registry import MODELS

# The CLCA authors' ViT-B/16 with 80 classes. Image size, method, keep rate;
# millions of parameters, GMACs and the tokens that leave layers 3, 6, 9 and
# 11, without and then with CLCA (less a head that theirs does not use). Of
# ATS the GMACs leave something out, and at keep rate 1 the tokens depend on
# the image.
AUTHORS = """
224 plain 1.0 85.860 17.57 197/197/197/197 85.934 18.37 198/204/210/218
224 EViT 1.0 85.860 17.57 197/197/197/197 85.934 18.37 198/204/210/218
224 EViT 0.7 85.860 11.61 140/100/72/72 85.934 12.18 140/104/79/87
224 EViT 0.5 85.860 8.82 100/52/28/28 85.934 9.32 101/55/32/40
224 EViT 0.25 85.860 6.53 51/15/6/6 85.934 6.96 52/17/8/16
224 EViT 0.1 85.860 5.64 22/5/3/3 85.934 5.96 22/5/3/11
224 TopK 1.0 85.860 17.57 197/197/197/197 85.934 18.37 198/204/210/218
224 TopK 0.7 85.860 11.49 139/98/69/69 85.934 12.05 139/102/76/84
224 TopK 0.5 85.860 8.72 99/50/26/26 85.934 9.26 100/54/31/39
224 TopK 0.25 85.860 6.47 50/14/5/5 85.934 6.86 51/15/6/14
224 TopK 0.1 85.860 5.55 21/3/2/2 85.934 5.90 21/4/2/10
224 DynamicViT 1.0 88.745 18.13 197/197/197/197 88.819 18.81 197/202/207/215
224 DynamicViT 0.7 88.745 11.48 138/97/68/68 88.819 11.97 138/100/73/81
224 DynamicViT 0.5 88.745 8.56 99/50/25/25 88.819 9.01 99/52/29/37
224 DynamicViT 0.25 88.745 6.16 50/13/4/4 88.819 6.51 50/14/5/13
224 DynamicViT 0.1 88.745 5.18 20/2/1/1 88.819 5.50 20/3/1/9
224 ATS 1.0 85.860 16.74 197/194/194/194 85.934 16.96 191/193/197/205
224 ATS 0.7 85.860 10.97 138/97/68/68 85.934 11.28 138/97/68/76
224 ATS 0.5 85.860 8.31 99/50/25/25 85.934 8.62 99/50/25/33
224 ATS 0.25 85.860 6.07 50/13/4/4 85.934 6.38 50/13/4/12
224 ATS 0.1 85.860 5.14 20/2/1/1 85.934 5.45 20/2/1/9
224 SiT 1.0 86.977 17.88 197/197/197/197 87.051 18.20 197/197/197/205
224 SiT 0.7 86.866 11.25 138/97/68/68 86.940 11.56 138/97/68/76
224 SiT 0.5 86.817 8.36 99/50/25/25 86.890 8.67 99/50/25/33
224 SiT 0.25 86.775 6.00 50/13/4/4 86.849 6.30 50/13/4/12
224 SiT 0.1 86.758 5.04 20/2/1/1 86.832 5.33 20/2/1/9
224 PatchMerger 1.0 86.316 17.75 197/197/197/197 86.390 18.07 197/197/197/205
224 PatchMerger 0.7 86.095 11.14 138/97/68/68 86.169 11.44 138/97/68/76
224 PatchMerger 0.5 85.996 8.27 99/50/25/25 86.070 8.57 99/50/25/33
224 PatchMerger 0.25 85.914 5.93 50/13/4/4 85.988 6.23 50/13/4/12
224 PatchMerger 0.1 85.880 4.98 20/2/1/1 85.954 5.27 20/2/1/9
224 DPCKNN 1.0 85.862 17.57 197/197/197/197 85.936 18.37 198/204/210/218
224 DPCKNN 0.7 85.862 11.07 138/97/68/68 85.936 11.84 139/104/81/89
224 DPCKNN 0.5 85.862 8.23 99/50/25/25 85.936 8.99 100/57/38/46
224 DPCKNN 0.25 85.862 5.91 50/13/4/4 85.936 6.66 51/20/17/25
224 DPCKNN 0.1 85.862 5.08 20/6/2/2 85.936 5.82 21/13/15/23
224 ToMe 1.0 85.860 17.57 197/197/197/197 85.934 crashes -
224 ToMe 0.7 85.860 11.43 138/97/68/68 85.934 12.20 139/104/81/89
224 ToMe 0.5 85.860 8.72 99/50/26/26 85.934 9.46 100/57/38/46
224 ToMe 0.25 85.860 9.50 99/62/53/53 85.934 10.26 100/69/66/74
224 ToMe 0.1 85.860 10.43 99/81/80/80 85.934 11.20 100/88/93/101
448 plain 1.0 86.312 78.52 785/785/785/785 86.385 79.51 786/792/798/806
448 EViT 1.0 86.312 78.52 785/785/785/785 86.385 79.51 786/792/798/806
448 EViT 0.7 86.312 50.17 551/387/273/273 86.385 50.86 552/392/280/288
448 EViT 0.5 86.312 38.21 394/199/101/101 86.385 38.77 395/202/106/114
448 EViT 0.25 86.312 28.56 198/52/15/15 86.385 28.99 199/53/17/25
448 EViT 0.1 86.312 24.80 81/10/3/3 86.385 25.17 81/11/4/12
448 TopK 1.0 86.312 78.52 785/785/785/785 86.385 79.51 786/792/798/806
448 TopK 0.7 86.312 50.08 550/386/271/271 86.385 50.79 551/391/279/287
448 TopK 0.5 86.312 38.10 393/197/99/99 86.385 38.68 394/201/104/112
448 TopK 0.25 86.312 28.48 197/50/14/14 86.385 28.93 198/52/16/24
448 TopK 0.1 86.312 24.73 80/9/2/2 86.385 25.11 80/10/3/11
448 DynamicViT 1.0 89.197 80.77 785/785/785/785 89.271 81.61 785/790/795/803
448 DynamicViT 0.7 89.197 49.58 549/385/269/269 89.271 50.16 549/388/275/283
448 DynamicViT 0.5 89.197 36.86 393/197/99/99 89.271 37.31 393/199/102/110
448 DynamicViT 0.25 89.197 26.68 197/50/13/13 89.271 27.04 197/51/14/22
448 DynamicViT 0.1 89.197 22.71 79/8/1/1 89.271 23.07 79/9/2/10
448 ATS 1.0 86.312 65.67 762/760/759/759 86.385 66.78 769/773/778/786
448 ATS 0.7 86.312 43.67 549/386/270/270 86.385 43.98 549/386/270/278
448 ATS 0.5 86.312 33.03 393/198/99/99 86.385 33.34 393/198/99/107
448 ATS 0.25 86.312 24.06 198/50/13/13 86.385 24.37 198/50/13/21
448 ATS 0.1 86.312 20.41 79/8/1/1 86.385 20.72 79/8/1/9
448 SiT 1.0 88.108 81.34 785/785/785/785 88.182 81.74 785/785/785/793
448 SiT 0.7 87.664 49.30 549/385/269/269 87.738 49.65 549/385/269/277
448 SiT 0.5 87.466 36.42 393/197/99/99 87.540 36.75 393/197/99/107
448 SiT 0.25 87.301 26.18 197/50/13/13 87.375 26.49 197/50/13/21
448 SiT 0.1 87.235 22.20 79/8/1/1 87.309 22.51 79/8/1/9
448 PatchMerger 1.0 88.123 81.35 785/785/785/785 88.196 81.76 785/785/785/793
448 PatchMerger 0.7 87.238 49.08 549/385/269/269 87.312 49.43 549/385/269/277
448 PatchMerger 0.5 86.843 36.17 393/197/99/99 86.917 36.49 393/197/99/107
448 PatchMerger 0.25 86.514 25.94 197/50/13/13 86.587 26.25 197/50/13/21
448 PatchMerger 0.1 86.382 21.97 79/8/1/1 86.455 22.27 79/8/1/9
448 DPCKNN 1.0 86.314 78.52 785/785/785/785 86.388 79.51 786/792/798/806
448 DPCKNN 0.7 86.314 47.94 549/385/269/269 86.388 48.79 550/392/282/290
448 DPCKNN 0.5 86.314 35.55 393/197/99/99 86.388 36.35 394/204/112/120
448 DPCKNN 0.25 86.314 25.69 197/50/13/13 86.388 26.45 198/57/26/34
448 DPCKNN 0.1 86.314 21.90 79/8/2/2 86.388 22.65 80/15/15/23
448 ToMe 1.0 86.312 78.52 785/785/785/785 86.385 crashes -
448 ToMe 0.7 86.312 50.01 549/385/269/269 86.385 50.87 550/392/282/290
448 ToMe 0.5 86.312 38.11 393/197/99/99 86.385 38.92 394/204/112/120
448 ToMe 0.25 86.312 41.43 393/246/209/209 86.385 42.26 394/253/222/230
448 ToMe 0.1 86.312 45.42 393/322/315/315 86.385 46.27 394/329/328/336
"""
AUTHORS = {
    tuple(row.split()[:3]): row.split()[3:]
    for row in AUTHORS.strip().splitlines()
}
OF_ONE_TOKEN = dict(SiT=768 // 2 + 1, PatchMerger=768)  # parameters
REDUCE_AT = (3, 6, 9)
METHODS = sorted(
    name
    for name, registered in MODELS.module_dict.items()
    if issubclass(registered, TokenReducer) and registered is not TokenReducer
)
KEEP_RATES = ('1.0', '0.7', '0.5', '0.25', '0.1')


def model(size, method, keep_rate, clca, **arch):
    method = None if method == 'plain' else method
    return vit(size, method, float(keep_rate), clca, **arch)


def authors(size, method, keep_rate, clca):
    """Millions of parameters, GMACs and tokens of the authors' model."""
    if clca and (method, keep_rate) == ('ToMe', '1.0'):
        method = 'plain'  # theirs crashes, ours does nothing
    row = AUTHORS[size, method, keep_rate][3 * clca : 3 * clca + 3]
    params, gmacs, tokens = row
    return float(params), float(gmacs), [int(n) for n in tokens.split('/')]


def ours(tokens):
    """Where the authors' last stage leaves CLS alone, a token stays here."""
    alone = tokens[2] == 1
    return [*tokens[:2], *(number + alone for number in tokens[2:])]


def leaving(cost):
    return [cost.tokens[layer] for layer in (*REDUCE_AT, 11)]


REDUCERS = sorted({method for _, method, _ in AUTHORS} - {'ATS', 'plain'})
QUICK = {
    ('448', 'plain', '1.0', True),
    *cases(('224', '448'), REDUCERS, KEEP_RATES, (False, True)),
}


def marked_cases():
    """All rows; those without which every two values still meet are slow."""
    for row, clca in product(AUTHORS, (False, True)):
        case = (*row, clca)
        if 'ATS' not in row:
            marks = () if case in QUICK else pytest.mark.slow
            yield pytest.param(*case, marks=marks)


@pytest.mark.parametrize('size, method, keep_rate, clca', list(marked_cases()))
def test_agrees_with_the_authors(size, method, keep_rate, clca):
    params, gmacs, tokens = authors(size, method, keep_rate, clca)
    cost = count_config(model(int(size), method, keep_rate, clca))
    assert leaving(cost) == ours(tokens)
    same = ours(tokens) == tokens
    rel, more = (0.001, 0) if same else (0.005, OF_ONE_TOKEN.get(method, 0))
    assert cost.flops == pytest.approx(gmacs * 1e9, rel=rel)
    assert cost.params - more == pytest.approx(params * 1e6, abs=1e3)


@pytest.mark.parametrize('keep_rate, clca', [('0.5', True), ('0.1', False)])
def test_of_ats_the_authors_leave_something_out(keep_rate, clca):
    """The matrix products of attention. And theirs projects the tokens that
    stay only, ours all that the attention saw."""
    params, gmacs, tokens = authors('224', 'ATS', keep_rate, clca)
    cost = count_config(model(224, 'ATS', keep_rate, clca))
    assert leaving(cost) == ours(tokens)
    assert cost.params == pytest.approx(params * 1e6, abs=1e3)
    products = sum(2 * N**2 * 768 for N in cost.attended)
    dropped = sum(cost.attended[i] - cost.tokens[i] for i in REDUCE_AT)
    same = cost.flops - products - dropped * 768**2
    assert same == pytest.approx(gmacs * 1e9, rel=0.005)


@pytest.mark.parametrize('method', ['KMedoids', 'Sinkhorn'])
@pytest.mark.parametrize('keep_rate, clca', [('0.5', True), ('0.1', False)])
def test_methods_that_leave_as_many_tokens_as_sit(method, keep_rate, clca):
    cost = count_config(model(224, method, keep_rate, clca))
    assert leaving(cost) == ours(authors('224', 'SiT', keep_rate, clca)[-1])


@pytest.mark.parametrize(
    'size, method, lengths, device',
    [
        (64, 'DPCKNN', (16, 8, 5), 'cpu'),
        (112, 'DPCKNN', (49, 24, 12), 'meta'),
        (64, 'KMedoids', (16, 8, 4), 'meta'),
        (112, 'KMedoids', (49, 24, 12), 'cpu'),
    ],
)
def test_distances_are_apart(size, method, lengths, device):
    """Each stage has the distances of all pairs of what is clustered."""
    config = model(size, method, '0.5', False, arch='deit-tiny', channels=192)
    with torch.device(device):
        cost = count(MODELS.build(config))
    assert cost.distances == sum(M**2 * 192 for M in lengths)
    assert cost.flops == sum(cost.parts.values())
    lines = list(rows(cost))
    distances = f'{cost.distances / 1e9:9.3f} GMACs of distances, not in these'
    assert lines[2] == distances


def test_others_have_no_distances():
    for method in set(METHODS) - {'DPCKNN', 'KMedoids', 'ATS'}:
        config = model(64, method, '0.5', True, arch='deit-tiny', channels=192)
        assert count_config(config).distances == 0
