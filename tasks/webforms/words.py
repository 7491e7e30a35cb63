"""Words from which the portal is furnished."""

FIRST = tuple(
    """Ana Boris Carla Deniz Elif Fritz Gita Hanna Igor Jana Karim Lena Mario Nadia Oskar Paula Quinn Rosa Sven Tara
    Umar Vera Wanda Xenia Yusuf Zora Akira Bela Chen Dora""".split()  # noqa: SIM905  (a list of thirty strings reads worse)
)
LAST = tuple(
    """Abel Bauer Costa Dahl Eriks Faber Groen Haas Ibsen Jonas Klein Lang Moser Nagy Otto Petri Quast Ross Stein Thal
    Ulm Vogt Weiss Xu Yilmaz Zander Ahmed Brandt Conti Diaz""".split()  # noqa: SIM905  (as above)
)
DEPARTMENTS = ("Finance", "Design", "Legal", "Research", "Sales", "Support")
QUALITIES = ("Plain", "Sturdy", "Light", "Classic", "Compact", "Bright", "Quiet", "Folding")
GOODS = {
    "Office": ("stapler", "desk lamp", "notebook", "paper tray", "chair", "whiteboard", "pen set"),
    "Kitchen": ("kettle", "mug", "bread knife", "teapot", "cutting board", "jar"),
    "Garden": ("trowel", "watering can", "hose", "flower pot", "rake", "bench"),
    "Travel": ("suitcase", "backpack", "neck pillow", "umbrella", "wallet", "adapter"),
}
CITIES = ("Lisbon", "Oslo", "Turin", "Ghent", "Porto", "Malmo", "Graz", "Leeds")
STREETS = ("Oak Lane", "Mill Road", "Harbour Street", "Park Avenue", "Station Square")
SUBJECTS = ("Printer jam", "Lost badge", "Slow network", "Broken chair", "Wrong invoice")
