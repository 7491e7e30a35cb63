"""Car Dealer of LMRL-Gym: sell a car to one of three types of buyers at a high price."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/CarDealer-v0",
    entry_point="lmgym.tasks.car_dealer.env:CarDealer",
    summary="Sell one of five cars in a dialogue to a buyer with a hidden limit, at as high a price as possible.",
    max_turns=25,
    prose=True,
    answer_tokens=96,
    splits={"train": 20_000, "test": 240},
    seats=("buyer",),
    score="price of the sale as a share of the highest that this buyer would pay for any of the cars; 0 without a sale",
    references={
        "null": 0.0,
        "oracle": 1.0,
        "published": "mean rewards: BC 0.445, filtered BC 0.548, MC 0.572, ILQL 0.463, PPO 0.505, GPT-4 0.535",
    },
    source="rules, rewards and published results of LMRL-Gym (MIT, arXiv 2311.18232); cars and buyers are ours",
    public={"rewards": ("fancy", "revenue")},
)
