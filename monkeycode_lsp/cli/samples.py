"""Short pieces of real code with a place where the next words are plain: what `monkeycode try` asks about."""

from __future__ import annotations

import msgspec

CURSOR = "<CURSOR>"


class Sample(msgspec.Struct, frozen=True):
    """One document and a place in it."""

    title: str
    file: str
    language: str
    """LSP identifier."""
    before: str
    after: str

    @property
    def text(self) -> str:
        return self.before + self.after

    @property
    def line(self) -> int:
        return self.before.count("\n")

    @property
    def column(self) -> int:
        return len(self.before) - self.before.rfind("\n") - 1


def _sample(title: str, file: str, language: str, marked: str) -> Sample:
    before, _, after = marked.partition(CURSOR)
    return Sample(title=title, file=file, language=language, before=before, after=after)


SAMPLES = (
    _sample(
        "Python", "stock.py", "python",
        """\
from dataclasses import dataclass


@dataclass
class Item:
    name: str
    price: float
    quantity: int


def cheapest(items: list[Item]) -> Item:
    return min(items, key=lambda item: item.price)


def total_value(items: list[Item]) -> float:
    # price times quantity, over all items
    return <CURSOR>


def names(items: list[Item]) -> list[str]:
    return sorted(item.name for item in items)
""",
    ),
    _sample(
        "TypeScript", "users.ts", "typescript",
        """\
interface User {
  id: number;
  name: string;
  email: string;
  active: boolean;
}

export function findByEmail(users: User[], email: string): User | undefined {
  return users.find((user) => user.email === email);
}

export function activeNames(users: User[]): string[] {
  return users.filter(<CURSOR>
}
""",
    ),
    _sample(
        "Go", "config.go", "go",
        """\
package config

import (
	"encoding/json"
	"fmt"
	"os"
)

type Config struct {
	Address string `json:"address"`
	Workers int    `json:"workers"`
}

func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		<CURSOR>
	}
	var config Config
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	return &config, nil
}
""",
    ),
)  # fmt: skip
