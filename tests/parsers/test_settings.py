"""Settings: three files, one value, and never looser than the team said. Source: cli §5, rulings A2, A5."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.settings import ENFORCEMENT, KEYS, Settings, parse_settings

REPO = "/home/user/checkout"


def settle(committed=None, local=None, user=None):
    return parse_settings(committed, local, user, REPO)


def test_no_files_give_the_defaults_and_no_faults():
    assert settle() == (Settings(), ())


def test_every_key_has_a_field_of_its_name():
    assert {key.replace(".", "_", 1) for key in KEYS} | {"rules"} == set(Settings._fields)


def test_every_default_is_a_value_its_key_accepts():
    for key, rule in KEYS.items():
        default = getattr(Settings(), key.replace(".", "_", 1))
        rule.read(list(default) if isinstance(default, tuple) else default)


def test_the_committed_file_sets_any_key_that_is_not_the_users():
    text = '[ingest]\nattestation = "off"\n[log]\nkeep = 2\n[gate]\nrequire_trailer = ["refs/heads/shapeup/**"]\n'
    settings, faults = settle(committed=text)
    assert faults == ()
    assert settings.ingest_attestation == "off"
    assert settings.log_keep == 2
    assert settings.gate_require_trailer == ("refs/heads/shapeup/**",)


def test_an_unknown_key_is_refused_with_its_line_and_the_nearest_known_one():
    settings, (fault,) = settle(committed='[log]\nlevel = "debug"\n[gate]\nstrickt = true\n')
    assert settings.log_level == "debug"
    assert fault.code == "E-SETTINGS"
    assert fault.where == ".shapeupd.toml:4"
    assert 'there is no setting "gate.strickt"' in fault.what
    assert '"gate.strict"' in fault.fix


def test_an_unknown_key_that_resembles_none_gets_the_keys_of_its_section_or_the_sections():
    _, (fault,) = settle(committed="[log]\nzzzzzzzzzz = 1\n")
    assert fault.fix == "remove the line; known are log.level, log.max_mb, log.keep"
    _, (fault,) = settle(committed="[zzzzzzzzzz]\nqqq = 1\n")
    assert fault.fix.startswith("remove the line; known are advisor, board, ")


@pytest.mark.parametrize(
    "text", ["strict = true", "[gate.deep]\nx = 1", '"gate.strict" = true', "[gates]\nstrict = true"]
)
def test_a_key_outside_its_section_is_unknown(text):
    settings, faults = settle(committed=text)
    assert settings == Settings()
    assert [fault.code for fault in faults] == ["E-SETTINGS"]


def test_text_that_is_not_toml_is_one_fault_with_its_line():
    settings, (fault,) = settle(committed="[gate]\nstrict = maybe\n")
    assert settings == Settings()
    assert fault.where == ".shapeupd.toml:2"


@pytest.mark.parametrize(
    "text",
    [
        '[ingest]\nattestation = "always"',
        "[gate]\nstrict = 1",
        "[log]\nkeep = 1.5",
        "[log]\nkeep = true",
        "[watch]\nrescan_s = 0",
        "[watch]\nrescan_s = nan",
        '[gate]\nrequire_trailer = "refs/heads/x"',
        '[release]\nversion_pairs = [["a"]]',
        '[rules]\nR-28 = "sometimes"',
    ],
)
def test_a_value_out_of_range_is_refused_and_the_default_stays(text):
    settings, (fault,) = settle(committed=text)
    assert settings == Settings()
    assert fault.code == "E-SETTINGS"
    assert "takes" in fault.why


def test_single_rules_win_over_the_profile():
    settings, faults = settle(committed='[rules]\nprofile = "enforce"\nR-28 = "warn"\n')
    assert faults == ()
    assert (settings.rule("R-28"), settings.rule("R-26")) == ("warn", "deny")


def test_a_process_rule_denies_under_enforce_where_the_table_says_deny():
    advise, enforce = settle()[0], settle(committed='[rules]\nprofile = "enforce"\n')[0]
    assert (advise.rule("R-28"), enforce.rule("R-28")) == ("warn", "deny")
    assert (advise.rule("R-29"), enforce.rule("R-29")) == ("warn", "warn")
    assert (advise.rule("R-29", "deny"), enforce.rule("R-29", "deny")) == ("warn", "deny")  # the graver case of §9
    assert enforce.rule("R-04", "warn") == "warn"  # the milder one


def test_an_integrity_rule_holds_whatever_the_profile_and_may_only_be_tightened():
    assert (settle()[0].rule("R-17"), settle()[0].rule("R-20")) == ("deny", "warn")
    for file in ("committed", "local", "user"):
        tightened, faults = settle(**{file: '[rules]\nR-20 = "deny"\n'})
        assert (tightened.rule("R-20"), faults) == ("deny", ())
        for level in ("off", "warn"):
            settings, (fault,) = settle(**{file: f'[rules]\nR-17 = "{level}"\n'})
            assert settings.rule("R-17") == "deny"
            assert "integrity" in fault.why


def test_a_rule_that_nobody_knows_is_refused():
    _, (fault,) = settle(committed='[rules]\nR-99 = "deny"\n')
    assert "R-01 to R-47" in fault.fix


@pytest.mark.parametrize(
    ("committed", "local", "holds"),
    [
        ('[ingest]\nattestation = "warn"', '[ingest]\nattestation = "require"', True),
        ('[ingest]\nattestation = "require"', '[ingest]\nattestation = "auto"', False),
        (None, '[ingest]\nattestation = "off"', False),
        (None, '[rules]\nR-28 = "off"', False),
        (None, '[rules]\nR-28 = "deny"', True),
        ('[rules]\nprofile = "enforce"', '[rules]\nR-28 = "warn"', False),
        ("[gate]\nstrict = true", "[gate]\nstrict = false", False),
        ('[gate]\nrequire_trailer = ["a"]', '[gate]\nrequire_trailer = ["b"]', False),
        ('[gate]\nrequire_trailer = ["a"]', '[gate]\nrequire_trailer = ["a", "b"]', True),
        ('[gate]\nhuman_globs = ["docs/**"]', '[gate]\nhuman_globs = ["docs/**", "src/**"]', False),
        ('[gate]\nhuman_globs = ["docs/**"]', "[gate]\nhuman_globs = []", True),
        ("[breakers]\nsilence_min = 10", "[breakers]\nsilence_min = 0", False),
        ("[breakers]\nsilence_min = 10", "[breakers]\nsilence_min = 5", True),
        (None, "[watch]\nrescan_s = 60", False),
        (None, '[watch]\npoll = "on"', True),
    ],
)
def test_the_local_file_may_only_tighten(committed, local, holds):
    settings, faults = settle(committed=committed, local=local)
    if holds:
        assert faults == ()
        assert settings != settle(committed=committed)[0]
    else:
        assert settings == settle(committed=committed)[0]
        (fault,) = faults
        assert fault.where.startswith(".shapeup/shapeupd.toml")


def test_keys_that_execute_something_come_from_the_users_file_alone():
    text = '[t0]\nauto = true\n[breakers]\nnotify = ["mail"]\n'
    for committed, local in ((text, None), (None, text)):
        settings, faults = settle(committed=committed, local=local)
        assert settings == Settings()
        assert len(faults) == 2
    settings, faults = settle(user=text)
    assert faults == ()
    assert (settings.t0_auto, settings.breakers_notify) == (True, ("mail",))


def test_the_users_table_for_this_repository_wins_over_his_global_keys():
    user = f'[log]\nkeep = 1\n[repo."{REPO}/".log]\nkeep = 9\n[repo."/elsewhere".log]\nkeep = 7\n'
    settings, faults = settle(user=user)
    assert faults == ()
    assert settings.log_keep == 9


def test_a_repo_table_means_nothing_in_the_other_files():
    _, faults = settle(committed=f'[repo."{REPO}".t0]\nauto = true\n')
    assert [fault.code for fault in faults] == ["E-SETTINGS"]


def test_the_user_may_set_what_the_team_left_open_and_only_tighten_what_it_set():
    user = '[ingest]\nattestation = "warn"\n'
    assert settle(user=user)[0].ingest_attestation == "warn"
    settings, faults = settle(committed='[ingest]\nattestation = "require"\n', user=user)
    assert settings.ingest_attestation == "require"
    assert len(faults) == 1


words = st.sampled_from(
    ["off", "warn", "auto", "require", "deny", "allow", "enforce", "advise", "observe", "apply", "error"]
)
values = st.one_of(
    words.map(lambda word: f'"{word}"'),
    st.sampled_from(["true", "false", "0", "3", "20.5", "[]", '["a"]', '["a", "b"]']),
)
pairs = st.dictionaries(
    st.sampled_from([*KEYS, "rules.R-17", "rules.R-20", "rules.R-28", "rules.R-30"]), values, max_size=8
)


def toml(pairs):
    return "".join(f"{key} = {value}\n" for key, value in pairs.items())


@given(pairs, pairs)
def test_no_local_file_makes_any_enforcement_key_looser(committed, local):
    before, _ = settle(committed=toml(committed))
    after, _ = settle(committed=toml(committed), local=toml(local))
    for key, rule in KEYS.items():
        name = key.replace(".", "_", 1)
        if rule.is_looser is not None:
            assert not rule.is_looser(getattr(after, name), getattr(before, name))
        if rule.user_only:
            assert getattr(after, name) == getattr(Settings(), name)
    order = ("off", "warn", "deny")
    for rule_id in ("R-17", "R-20", "R-28", "R-30", "R-31"):
        assert order.index(after.rule(rule_id)) >= order.index(before.rule(rule_id))


@given(st.text(), st.text(), st.text())
def test_no_text_makes_it_raise(committed, local, user):
    settings, faults = settle(committed, local, user)
    assert isinstance(settings, Settings)
    assert all(fault.code == "E-SETTINGS" for fault in faults)


def test_every_enforcement_key_knows_what_is_looser():
    assert all(rule.is_looser or rule.user_only for key, rule in KEYS.items() if key.startswith(ENFORCEMENT))
