"""How methods are written: what is understood, what is refused, and with which words."""

from __future__ import annotations

import copy
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold import configure
from twofold.errors import UserError
from twofold.method import Method, Piece, split_text
from twofold.objectives import Objective
from twofold.objectives.der import Der
from twofold.objectives.er import Er
from twofold.objectives.joint import Joint
from twofold.routines import Clip, Routine, Sgd
from twofold.routines.agem import Agem
from twofold.routines.gem import Gem
from twofold.terms import Decay, Ewc


def made(text: str) -> list[tuple[str, dict]]:
    objective, routines = Method.parse(text).make()
    return [(part.name, part.explicit()) for part in (objective, *routines)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("er", [Er()]),
        ("er+gem", [Er(), Gem()]),
        ("er+gem(gamma=0.1)", [Er(), Gem(gamma=0.1)]),
        ("er+gem(0.1)", [Er(), Gem(gamma=0.1)]),
        ("er+gem(0.1, always)", [Er(), Gem(gamma=0.1, when="always")]),
        ("er+gem(0.1,when=always)", [Er(), Gem(gamma=0.1, when="always")]),
        (" er + gem ( gamma = 0.1 , ridge=1e-2 ) ", [Er(), Gem(gamma=0.1, ridge=0.01)]),
        ("er+gem()", [Er(), Gem()]),
        ("er+agem+gem(0)", [Er(), Agem(), Gem(gamma=0)]),
        ("er+gem(0)+agem", [Er(), Gem(gamma=0), Agem()]),
        ("joint(keep=20000)+agem", [Joint(keep=20_000), Agem()]),
        ("joint(keep=none)", [Joint()]),
        ("der(0.3,0.5,none)", [Der(alpha=0.3, beta=0.5, augment="none")]),
        ("gem(ridge=1e+3)", ["finetune", Gem(ridge=1000.0)]),
    ],
)
def test_what_a_text_means(text, expected):
    objective, routines = Method.parse(text).make()
    parts = [objective, *routines]
    if expected[0] == "finetune":
        assert objective.name == expected.pop(0)
        parts = routines
    assert parts == expected


@pytest.mark.parametrize(
    ("one", "other", "canonical"),
    [
        ("gem", "finetune+gem", "gem"),
        ("agem", "finetune+agem", "agem"),
        ("sgd", "finetune", "finetune"),
        ("er+sgd", "er", "er"),
        ("er+sgd+gem+sgd", "er+gem", "er+gem"),
        ("er+gem(0.5)", "er+gem(gamma=0.5,when=violated)", "er+gem"),
        ("er+gem(when=always,gamma=0.1)", "er+gem(.1,always)", "er+gem(gamma=0.1,when=always)"),
        ("gem(gamma=1)", "gem(gamma=1.0)", "gem(gamma=1.0)"),
        ("joint(none)", "joint", "joint"),
        ("joint(keep=5)+sgd", "joint(5)", "joint(keep=5)"),
        ("der(alpha=0.5)+agem(objective)", "der+agem", "der+agem"),
    ],
)
def test_spellings_that_mean_the_same(one, other, canonical):
    assert made(one) == made(other) == made(canonical)
    assert Method.parse(one).text() == Method.parse(other).text() == canonical


ROUTINES = sorted(Routine.known)  # a new one joins, without options


def options_of(kind: str) -> st.SearchStrategy[str]:
    number = st.floats(1e-6, 1e6).map(str)
    share = st.floats(0.01, 0.99).map(str)
    whole = st.integers(1, 10**6).map(str)
    choice = st.sampled_from
    known = {
        "gem": {
            "gamma": number,
            "when": choice(["violated", "always"]),
            "rule": choice(["bound", "added", "none"]),
            "references": choice(["independent", "cumulative"]),
            "ridge": number,
        },
        "agem": {"reference": choice(["objective", "frozen"])},
        "clip": {"limit": number},
        "ema": {"decay": share},
        "hold": {
            "omega": number,
            "gain": number,
            "damping": number,
            "share": share,
            "every": whole,
            "examples": whole,
        },
        "lpr": {"omega": st.floats(1e-6, 1e5).map(str), "every": whole, "examples": whole},
        "mega": {"scheme": choice(["I", "II"])},
        "sam": {"rho": number},
        "soft-gem": {"eps": share},
        "torchjd:MGDA": {"epsilon": number, "max_iters": whole},
        "warmup": {"iterations": whole, "shape": choice(["linear", "cosine"])},
        "joint": {"keep": st.one_of(st.integers(1, 10**9).map(str), st.just("none"))},
        "der": {"alpha": number, "beta": number, "augment": choice(["crop", "pad", "none"])},
        "bic": {"augment": choice(["crop", "pad", "none"]), "validation": share},
    }
    options = st.fixed_dictionaries({}, optional=known.get(kind, {}))
    return options.map(lambda d: kind + f"({','.join(f'{k}={v}' for k, v in d.items())})")


methods = st.builds(
    lambda objective, routines: "+".join([objective, *routines]),
    st.sampled_from(["finetune", "er", "joint", "der", "bic"]).flatmap(options_of),
    st.lists(st.sampled_from([*ROUTINES, "torchjd:MGDA"]).flatmap(options_of), max_size=3),
)


@given(text=methods)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_the_canonical_text_means_the_same_and_is_its_own(text):
    method = Method.parse(text)
    second = Method.parse(method.text())
    assert second.text() == method.text()
    assert made(method.text()) == made(text)


def test_more_options_fill_in_only_what_was_not_given():
    more = {"gem": {"references": "cumulative", "gamma": 0.1}, "der": {"augment": "pad"}}
    method = Method.parse("er+gem(gamma=0.7)")
    _, (gem,) = method.make(more)
    assert (gem.gamma, gem.references) == (0.7, "cumulative")
    assert method.text(more) == "er+gem(gamma=0.7)"
    assert Method.parse("er+gem(gamma=0.1)").text(more) == "er+gem"  # holds anyway
    assert Method.parse("er+gem(gamma=0.5)").text(more) == "er+gem(gamma=0.5)"  # does not
    assert Method.parse("joint(keep=none)").text({"joint": {"keep": 9}}) == "joint(keep=none)"


def test_each_making_is_fresh():
    method = Method.parse("er+gem")
    (first, (one,)), (second, (other,)) = method.make(), method.make()
    assert first is not second
    assert one is not other


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        # Unknown names, with the closest spelling.
        ("err", "unknown method 'err': did you mean 'er'?"),
        ("gme", "unknown method 'gme': did you mean 'gem'?"),
        ("er+gme", "unknown routine or term 'gme': did you mean 'gem'?"),
        ("er+decya", "unknown routine or term 'decya': did you mean 'decay'?"),
        ("er+xyz", "unknown routine or term 'xyz' (there are agem, clip, cosine, decay, distil, e"),
        ("ER", "unknown method 'ER'"),
        ("er+gem(gama=0.1)", "unknown option of gem 'gama': did you mean 'gamma'?"),
        ("er+agem(gamma=0.1)", "unknown option of agem 'gamma'"),
        ("er(keep=3)", "unknown option of er 'keep'"),
        ("gem(when=allways)", "unknown value of gem's when 'allways': did you mean 'always'?"),
        ("der(augment=padd)", "did you mean 'pad'?"),
        # Wrong values.
        ("gem(gamma=high)", "gem's gamma must be a finite number, not 'high'"),
        ("gem(gamma=)", "gem's gamma must be a finite number, not ''"),
        ("gem(gamma=nan)", "gem's gamma must be a finite number"),
        ("gem(gamma=inf)", "gem's gamma must be a finite number"),
        ("gem(gamma=1e999)", "gem's gamma must be a finite number"),
        ("gem(gamma=-1)", "gem's gamma must be at least 0, not -1.0"),
        ("gem(ridge=0)", "gem's ridge must be above 0"),
        ("gem(gamma=none)", "gem's gamma must be a finite number"),
        ("joint(keep=1.5)", "joint's keep must be a whole number, not '1.5'"),
        ("joint(keep=0)", "joint's keep must be above 0"),
        ("bic(validation=1)", "bic's validation must be in 0..1"),
        ("der(alpha=-0.1)", "der's alpha must be at least 0"),
        # Too many, twice, in the wrong order.
        ("agem(frozen,1)", "agem takes at most 1 option: reference"),
        ("finetune(1)", "finetune has no options"),
        ("gem(0.1,gamma=0.2)", "gem has its option 'gamma' twice"),
        ("gem(gamma=0.1,gamma=0.2)", "gem has its option 'gamma' twice"),
        ("gem(gamma=0.1,always)", "'always' must come before the named options"),
        # Two objectives, or one in the wrong place.
        ("er+joint", "'joint' is a second objective, and a method has one"),
        ("er+gem+er", "'er' is a second objective, and a method has one"),
        # A term twice.
        ("decay+er+decay(1)", "method 'decay+er+decay': decay is there twice: leave one out"),
        # Bad syntax.
        ("", "can't read ''"),
        ("  ", "can't read ''"),
        ("+", "can't read ''"),
        ("er+", "can't read ''"),
        ("+gem", "can't read ''"),
        ("er++gem", "can't read ''"),
        ("er+gem(", "brackets don't match"),
        ("er+gem(0.1", "brackets don't match"),
        ("er+gem)", "brackets don't match"),
        ("er+gem(0.1)x", "can't read 'gem(0.1)x'"),
        ("(0.1)", "can't read '(0.1)'"),
        ("er+(gem)", "can't read '(gem)'"),
        ("er)(", "can't read 'er)('"),
        ("gem((0.1))", "gem's gamma must be a finite number, not '(0.1)'"),
        ("gem(0.1)(0.2)", "gem's gamma must be a finite number"),
        ("er,gem", "unknown method 'er,gem'"),
        ("er gem", "unknown method 'er gem'"),
        ("er-gem", "unknown method 'er-gem'"),
    ],
)
def test_a_wrong_text_is_refused_in_one_line(text, fragment):
    with pytest.raises(UserError, match=re.escape(fragment)) as caught:
        Method.parse(text)
    assert "\n" not in str(caught.value)


PIECES = [*Objective.known, *Routine.known, *"+(),= ", "gamma", "keep", "when", "none", "always"]
PIECES += ["0.5", "-1", "nan", "1e999", "gama", "\n", "é", "\x00", "9" * 5000]


@given(text=st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PIECES)).map("".join)))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_whatever_is_written_is_understood_or_refused(text):
    try:
        parts = split_text(text)
    except UserError:
        parts = None
    else:
        assert parts
        assert all(part.name for part in parts)
    try:
        method = Method.parse(text)
    except UserError:
        return
    assert parts is not None
    assert made(method.text()) == made(text)


def test_parts():
    assert split_text("a+b(1, x=2+3)+c()") == [
        Piece("a"),
        Piece("b", ("1",), {"x": "2+3"}),
        Piece("c"),
    ]


# Methods as values.


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Er(), "er"),
        (Gem(), "gem"),
        (Er() + Gem(gamma=0.5) + Clip(1.0), "er+gem(gamma=0.5)+clip(1.0)"),
        (Er() + Gem(0.1, "always"), "er+gem(0.1,always)"),
        (Er() + Gem(gamma=1), "er+gem(gamma=1)"),
        (Joint(keep=5) + Agem(reference="frozen"), "joint(5)+agem(frozen)"),
        (Joint(keep=None), "joint(none)"),
        (Gem() + Clip(2), "finetune+gem+clip(2)"),
        (Method.parse("er+gem") + Clip(), "er+gem+clip"),
        (Er() + Sgd() + Gem(), "er+gem"),
        (Gem() + Er(), "er+gem"),
        (Decay(1e-4) + Gem() + Er() + Clip(), "er+gem+decay(1e-4)+clip"),
        (Er() + Ewc(10) + Decay(), "decay+er+ewc(10)"),
        ((Gem() + Clip()) + (Er() + Decay()), "er+decay+gem+clip"),
    ],
    ids=str,
)
def test_a_value_is_the_method_of_its_text(value, text):
    method = Method.read(value)
    assert method == Method.parse(text)
    assert str(method) == str(Method.parse(text))
    one, other = (configure("rotated-mnist", each) for each in (value, text))
    assert one.identity() == other.identity()
    assert (one.method, one.components) == (other.method, other.components)


def test_values_are_not_used_up():
    """A run has fresh components, so one value can be in several methods."""
    gem = Gem(0.3)
    method = Er() + gem
    _, (component,) = method.make()
    assert component == gem
    assert component is not gem
    component.gamma = 9.0
    assert gem.gamma == 0.3
    assert str(Er() + gem + gem) == "er+gem(gamma=0.3)+gem(gamma=0.3)"


def test_a_component_remembers_what_it_was_written_with():
    assert Gem().given == {}
    assert Gem(gamma=0.5).given == {"gamma": 0.5}
    assert Gem(1, ridge=1e-2).given == {"gamma": 1.0, "ridge": 0.01}
    assert isinstance(Gem(1).given["gamma"], float)
    assert copy.deepcopy(Gem(0.1)).given == {"gamma": 0.1}
    assert Gem(0.5) == Gem()  # as values they are the same
    Gem(0.1).given.clear()
    assert Gem(0.1).explicit() == Gem(0.1).explicit() | {"gamma": 0.1}


@pytest.mark.parametrize(
    ("usual", "explicit"),
    [
        ("er+agem", "er+agem(reference=objective)"),
        (Er() + Agem(), Er() + Agem(reference="objective")),
        ("er+gem", "er+gem(references=independent)"),
        (Er() + Gem(), Er() + Gem(references="independent")),
        ("joint", "joint(keep=none)"),
        (Joint(), Joint(keep=None)),
    ],
    ids=str,
)
def test_an_explicit_option_wins_over_a_profile_even_if_it_is_the_default(usual, explicit):
    published = [
        configure("rotated-mnist", method, profile="published") for method in (usual, explicit)
    ]
    plain = configure("rotated-mnist", explicit)
    assert published[0].components != published[1].components
    assert published[1].components == plain.components
    assert published[1].identity() != published[0].identity()
    # The recorded text means the same under that profile.
    for config in published:
        second = configure("rotated-mnist", config.method, profile="published")
        assert second.identity() == config.identity()


def test_value_and_text_are_one_run_under_a_profile():
    for value, text in (
        (Er() + Agem(), "er+agem"),
        (Er() + Agem(reference="objective"), "er+agem(objective)"),
    ):
        one, other = (
            configure("rotated-mnist", each, profile="published") for each in (value, text)
        )
        assert one.identity() == other.identity()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (lambda: Er() + Joint(), "er+joint"),
        (lambda: Er() + Decay() + Decay(), "er+decay+decay"),
        (lambda: Er() + Gem() + Joint(), "er+gem+joint"),
        (lambda: Gem(gama=0.1), "er+gem(gama=0.1)"),
        (lambda: Agem(gamma=0.1), "er+agem(gamma=0.1)"),
        (lambda: Gem(when="allways"), "gem(when=allways)"),
        (lambda: Gem(gamma="high"), "gem(gamma=high)"),
        (lambda: Gem(gamma=-1.0), "gem(gamma=-1)"),
        (lambda: Gem(ridge=0.0), "gem(ridge=0)"),
        (lambda: Joint(keep=0), "joint(keep=0)"),
        (lambda: Er(1), "er(1)"),
        (lambda: Agem("frozen", 1), "agem(frozen,1)"),
        (lambda: Gem(0.1, gamma=0.2), "gem(0.1,gamma=0.2)"),
    ],
)
def test_a_wrong_value_is_refused_with_the_words_for_its_text(value, text):
    with pytest.raises(UserError) as by_value:
        value()
    with pytest.raises(UserError) as by_text:
        Method.parse(text)
    assert str(by_value.value) == str(by_text.value)
    assert "\n" not in str(by_value.value)


@pytest.mark.parametrize("value", ["high", float("nan"), float("inf"), True, None, [1]])
def test_a_value_of_the_wrong_type_is_refused(value):
    with pytest.raises(UserError, match=r"^gem's gamma must be a finite number, not "):
        Gem(gamma=value)


def test_the_nearest_spelling_of_a_keyword_is_offered():
    with pytest.raises(UserError, match=r"^unknown option of gem 'gama': did you mean 'gamma'\?"):
        Gem(gama=0.5)
