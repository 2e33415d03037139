"""`python -m snake_pz`: the command `snake-pz`, where no script of this name is on the path."""

from adapters.command.main import app

if __name__ == "__main__":
    app(prog_name="python -m snake_pz")
