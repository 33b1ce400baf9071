"""``python -m cuanto`` is the ``cuanto`` command."""

from cuanto.cli.main import run

if __name__ == "__main__":
    run()
