"""TextArena: games of the textarena library for one or two players, each instance with a seed of its own."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

_ONE = """
2048 Bandit Blackjack Countdown Crosswords FifteenPuzzle FrozenLake GuessTheNumber LightsOut LogicPuzzle Mastermind
Minesweeper PegJump RushHour Secretary Set Sokoban Sudoku ThreeCardMonte TowerOfHanoi
"""
_TWO = """
Alquerque Battleship Breakthrough Briscola Chopsticks ColonelBlotto ConnectFour Crusade GameOfPureStrategy GermanWhist
Golf HighSociety IndianPoker IteratedMatchingPennies IteratedPrisonersDilemma IteratedRockPaperScissors
IteratedTwoThirdsAverage IteratedUltimatumGame KuhnPoker LiarsDice LinesOfAction MarketEntryGame MemoryGame NewRecruit
Nim Othello PigDice Poker PublicGoodsGame QuantumTicTacToe SantoriniBaseFixed SimpleBlindAuction SimpleNegotiation
SimpleTak Snake SpiteAndMalice Stratego Surround Tak TicTacToe TruthAndDeception TwoDollar UltimateTicTacToe
WildTicTacToe
"""
PLAYERS = {**dict.fromkeys(_ONE.split(), 1), **dict.fromkeys(_TWO.split(), 2)}  # game -> number of players
GAMES = tuple(sorted(PLAYERS))
EACH = {"train": 10_000, "test": 2}  # instances of a game

SPEC = TaskSpec(
    id="lmgym/TextArena-v0",
    entry_point="lmgym.tasks.text_arena.env:TextArena",
    summary=f"Play {len(GAMES)} games of textarena in turn, alone or against an opponent.",
    max_turns=100,
    prose=True,
    splits={split: count * len(GAMES) for split, count in EACH.items()},
    score="1 for a win or a puzzle solved, 0.5 for a draw of two players, 0 for a loss; else the game's own share",
    references={},
    extras=("textarena",),
    seats=("opponent",),
    player="thread",
    source="games of textarena 0.7.4 (MIT)",
    goldens="outcome",
    public={"game": ("", *GAMES)},
)


def _game(name: str) -> TaskSpec:
    alone = PLAYERS[name] == 1
    return replace(
        SPEC,
        id=f"lmgym/TextArena-{name}-v0",
        summary=f"Play textarena's {name} {'alone' if alone else 'against an opponent'}.",
        splits=EACH if alone else {split: 2 * count for split, count in EACH.items()},
        seats=() if alone else SPEC.seats,
        options={"game": name},
        part_of=SPEC.id,
        public={},
    )


VARIANTS = tuple(_game(name) for name in GAMES)
