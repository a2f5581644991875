"""Where a command belongs: the main worktree, its lock, its socket. Source: rulings A1, D6, L4, targets 30."""

import os
import subprocess

import pytest

from daemon.place import SOCKET_LIMIT_BYTES, Place, client_sockets, find_place, server_socket


def git(folder, *words):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *identity, *words], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "start")
    return root


def test_a_folder_inside_a_repository_belongs_to_its_top(repository):
    (repository / "a/b").mkdir(parents=True)
    assert find_place(repository / "a/b") == Place(repository, repository / ".git")
    assert find_place(repository).lock == repository / ".git/shapeupd.lock"


def test_a_linked_worktree_belongs_to_the_main_one(repository, tmp_path):
    git(repository, "worktree", "add", "-q", "--detach", "../linked")
    (tmp_path / "linked/deep").mkdir()
    assert find_place(tmp_path / "linked/deep") == find_place(repository)


def test_a_submodule_is_a_repository_of_its_own_and_so_are_its_worktrees(repository, tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "start")
    git(repository, "submodule", "--quiet", "add", str(inner), "sub")
    place = find_place(repository / "sub")
    assert place == Place(repository / "sub", repository / ".git/modules/sub")
    git(repository / "sub", "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    assert find_place(tmp_path / "linked") == place


def test_a_separate_git_dir_is_followed(tmp_path):
    (tmp_path / "work").mkdir()
    git(tmp_path / "work", "init", "-q", "--separate-git-dir", str(tmp_path / "store"))
    assert find_place(tmp_path / "work") == Place(tmp_path / "work", tmp_path / "store")


def test_a_worktree_of_a_bare_repository_keeps_its_own_state(tmp_path):
    git(tmp_path, "init", "-q", "--bare", "bare")
    git(tmp_path / "bare", "worktree", "add", "-q", "--orphan", "-b", "x", "../linked") if _knows_orphan(
        tmp_path
    ) else None
    linked = tmp_path / "linked"
    if not linked.exists():
        tree = subprocess.run(
            ["git", "hash-object", "-t", "tree", "-w", os.devnull],
            cwd=tmp_path / "bare",
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        commit = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit-tree", "-m", "x", tree],
            cwd=tmp_path / "bare",
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        git(tmp_path / "bare", "worktree", "add", "-q", "--detach", "../linked", commit)
    assert find_place(linked) == Place(linked, tmp_path / "bare")


def _knows_orphan(folder):
    text = subprocess.run(["git", "worktree", "-h"], cwd=folder, capture_output=True, text=True, check=False).stdout
    return "--orphan" in text


def test_a_folder_reached_through_a_link_is_the_folder_itself(repository, tmp_path):
    (tmp_path / "link").symlink_to(repository)
    assert find_place(tmp_path / "link") == find_place(repository)


@pytest.mark.parametrize("tree", [".shapeup", "shapeup"])
def test_outside_git_the_nearest_folder_with_a_tree_is_the_root(tmp_path, tree):
    (tmp_path / "p" / tree).mkdir(parents=True)
    (tmp_path / "p/a/b").mkdir(parents=True)
    place = find_place(tmp_path / "p/a/b")
    assert place == Place(tmp_path / "p", None)
    assert place.lock == tmp_path / "p/.shapeup/daemon.lock"


def test_outside_everything_the_folder_itself_is_the_root(tmp_path):
    (tmp_path / ".git").mkdir()  # an empty .git is no repository to git either
    assert find_place(tmp_path) == Place(tmp_path, None)


def test_the_working_directory_is_where_one_starts_unless_told(repository, monkeypatch):
    monkeypatch.chdir(repository)
    assert find_place().root == repository


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        find_place(tmp_path / "nowhere")


def test_the_socket_lies_in_the_runtime_folder_under_a_name_of_the_root(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    socket = server_socket(tmp_path / "one")
    assert socket.parent == tmp_path / "shapeupd"
    assert socket.suffix == ".sock"
    assert socket != server_socket(tmp_path / "two")


@pytest.mark.parametrize("runtime", ["", "relative/folder", "/nowhere/at/all"])
def test_without_a_runtime_folder_the_socket_lies_below_the_temporary_one(tmp_path, monkeypatch, runtime):
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    assert server_socket(tmp_path).parent == type(tmp_path)(f"/var/tmp/shapeupd-{os.getuid()}")


def test_a_socket_path_always_fits_its_address(tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    monkeypatch.setenv("TMPDIR", str(deep))
    socket = server_socket(deep / ("f" * 200))
    assert len(os.fsencode(socket)) <= SOCKET_LIMIT_BYTES


def test_a_client_with_another_environment_looks_where_the_daemon_may_listen(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("TMPDIR", raising=False)
    listening = server_socket(tmp_path)
    assert listening in client_sockets(tmp_path)
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert server_socket(tmp_path) in client_sockets(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert server_socket(tmp_path) == listening
