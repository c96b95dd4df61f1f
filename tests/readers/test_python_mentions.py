"""Lists and texts that a module only looks for are no set-ups; what may go anywhere else is one."""

from __future__ import annotations

import textwrap
import time

import pytest
from python_reading import read

LIST = '["actor.use_kl_loss=True", "actor.kl_loss_type=low_var_kl"]'
COMMAND = '"python3 -m verl.trainer.main_ppo actor.use_kl_loss=True"'
ARGV = '["python3", "-m", "verl.trainer.main_ppo", "actor.use_kl_loss=True"]'

LOOKED_FOR = {
    "a loop that asserts": f"for each in {LIST}:\n    assert each in text",
    "of a tuple": "for each in ('a.b=1', 'c.d=2'):\n    assert each in text, f'no {each}'",
    "a loop that complains": f"for each in {LIST}:\n    if each not in text:\n        raise ValueError(f'no {{each}}')",
    "a loop that collects": f"for each in {LIST}:\n    if each not in text:\n        missing.append(each)",
    "named": f"required = {LIST}\nfor each in required:\n    assert text.count(each) == 1",
    "what is missing": f"missing = [each for each in {LIST} if each not in text]\nassert not missing, missing",
    "missing, told": f"missing = [each for each in {LIST} if each not in text]\nif missing:\n    print(', '.join(missing))",
    "all of them": f"assert all(each in text for each in {LIST})",
    "a helper": f"def need(text, tokens, label):\n    for each in tokens:\n        assert each in text, (label, each)\n\nneed(t, {LIST}, 'x')",
    "a helper's keyword": f"def need(text, tokens):\n    for each in tokens:\n        assert each in text\n\nneed(text=t, tokens={LIST})",
    "a comparison": f"assert made == {LIST}",
    "expected": f"expected = {LIST}\nassert made == expected",
    "a test case's": f"class T:\n    def test(self):\n        self.assertEqual(made(), {LIST})",
    "each of a test case's": f"def test():\n    for each in {LIST}:\n        assertIn(each, text)",
    "given to a test": f"@pytest.mark.parametrize('each', {LIST})\ndef test(each):\n    assert each in text",
    "a set": f"assert set({LIST}) <= found\nassert found.issuperset({LIST})",
    "a text": f"call = {COMMAND}\nassert call in text",
    "a text's place": f"call = {COMMAND}\nassert text.index(other) < text.index(call)",
    "what follows a text": f"call = {COMMAND}\nassert 'x' in text.split(call)[1]\nassert text.partition(call)[0]",
    "in a function": f"def test():\n    call = {COMMAND}\n    assert call in text",
    "a pattern": f"call = {COMMAND}\nassert re.search(call, text)",
    "words of a command": f"assert made == {ARGV}",
    "words of a command, expected": f"expected = {ARGV}\nassert run.call_args[0][0] == expected",
    "asserted of a mock": f"run.assert_called_once_with({ARGV})",
}
GIVEN_AWAY = {
    "composed": f"cfg = compose('ppo', overrides={LIST})",
    "an argument": f"train({LIST})",
    "a helper that runs": f"def go(args):\n    print(args)\n    main(args)\n\ngo({LIST})",
    "the program's own": f"sys.argv = ['train.py', *{LIST}]",
    "made longer": f"overrides = {LIST}\nif 'x=1' not in overrides:\n    overrides.append('x=1')\ntrain(overrides)",
    "given back": f"def overrides():\n    made = {LIST}\n    assert 'x' not in made\n    return made",
    "looked through and used": f"given = {LIST}\nfor each in given:\n    assert '=' in each\ntrain(given)",
    "each of them used": f"for each in {LIST}:\n    assert each in known\n    command += ' ' + each",
    "kept": f"OVERRIDES = {LIST}",
    "kept in a class": f"class Case:\n    overrides = {LIST}",
    "in a table": f"CASES = {{'kl': {LIST}}}\nassert 'kl' in CASES",
    "a dot-list": f"cfg = OmegaConf.from_dotlist({LIST})",
    "added to a command": f"cmd = base + {LIST}\nsubprocess.run(cmd)",
    "a test's arguments": f"@pytest.mark.parametrize('each', {LIST})\ndef test(each):\n    main([each])",
    "several": f"a, b = {LIST}, 1\nassert b",
}
COMMANDS = {
    "run": f"call = {COMMAND}\nassert 'x' not in call\nos.system(call)",
    "printed, for a shell to run": f"call = {COMMAND}\nprint(call)",
    "put into a script": f"call = {COMMAND}\nscript = script.replace('@CALL@', call)",
    "words that are run": f"cmd = {ARGV}\nassert cmd\nsubprocess.run(cmd)",
    "words that are printed": f"cmd = {ARGV}\nprint(' '.join(cmd))",
    "given back": f"def made():\n    cmd = {ARGV}\n    assert '-m' in cmd\n    return cmd",
}


def _found(code: str) -> int:
    document = read(textwrap.dedent(code))
    overrides = [each for each in document.objects if each.kind == "overrides"]
    return len(overrides) + len(document.commands) + len(document.shell_strings)


@pytest.mark.parametrize("name", LOOKED_FOR)
def test_what_is_only_looked_for_is_no_set_up(name: str) -> None:
    assert _found(LOOKED_FOR[name]) == 0


@pytest.mark.parametrize("name", GIVEN_AWAY)
def test_what_may_go_elsewhere_is_one(name: str) -> None:
    assert _found(GIVEN_AWAY[name]) > 0


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_may_be_run_is_one(name: str) -> None:
    assert _found(COMMANDS[name]) > 0


def test_looking_for_uses_takes_bounded_time() -> None:
    """Many lists of one name, each of whose uses may be that of any, and uses deep inside others."""
    many = "".join(f"given = ['a.b={n}']\nassert 'x' in given\n" for n in range(3_000))
    deep = f"given = {LIST}\nassert " + "[" * 80 + "given" + "]" * 80 + " == 1\n"
    start = time.process_time()
    assert _found(many) > 0
    _found(deep)
    assert time.process_time() - start < 5
