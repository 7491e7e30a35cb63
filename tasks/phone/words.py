"""Vocabulary of the phone's contents and of its requests."""

FIRST = (
    *("Ada", "Bruno", "Carla", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Katya", "Lars", "Maria"),
    *(
        "Nadia",
        "Omar",
        "Paula",
        "Quentin",
        "Rosa",
        "Stefan",
        "Tilda",
        "Umar",
        "Vera",
        "Walter",
        "Xenia",
        "Yusuf",
        "Zoe",
    ),
)
LAST = (
    *("Adler", "Bianchi", "Costa", "Dahl", "Evans", "Fischer", "Garcia", "Hansen", "Ivanov", "Jansen", "Kovacs"),
    *("Lopez", "Moreau", "Novak", "Olsen", "Petrov", "Quinn", "Rossi", "Silva", "Torres", "Ueda", "Varga", "Weber"),
)
CITIES = ("Bergen", "Cork", "Ghent", "Lyon", "Porto")
STREETS = ("Harbour Street", "Mill Lane", "Station Road", "Park Avenue", "Castle Hill", "Bridge Street", "Garden Row")
TITLES = (
    *("Dentist", "Piano lesson", "Team meeting", "Book club", "Yoga class", "Parents' evening", "Car inspection"),
    *(
        "Budget review",
        "Choir practice",
        "Haircut",
        "Lunch with Sam",
        "Language course",
        "Chess evening",
        "Flat viewing",
    ),
)
ROOMS = ("Room 12", "Town Hall", "Café Luna", "Studio 4", "Main Office", "City Library", "Green Park")
NOTES = (
    *(
        "I will be ten minutes late.",
        "Thank you for the lovely evening!",
        "Can we talk tomorrow?",
        "The keys are inside.",
    ),
    *(
        "Happy birthday!",
        "I have bought the tickets.",
        "Please call me back.",
        "The train leaves at noon.",
        "Good luck!",
    ),
)
CHATS = (
    *("Did you see the game?", "See you soon.", "That sounds great.", "I am on my way.", "Sorry, I was asleep."),
    *("What a day!", "Let me know.", "No problem at all.", "We should do this again.", "I found your umbrella."),
)
GOODS = {
    "Books": ("Atlas of Islands", "Bread Baking", "Night Sky Guide", "Short Stories", "World History"),
    "Kitchen": ("Chef's Knife", "Coffee Grinder", "Frying Pan", "Glass Jar", "Salad Bowl"),
    "Garden": ("Flower Pot", "Garden Hose", "Hand Trowel", "Rain Barrel", "Watering Can"),
    "Sports": ("Climbing Rope", "Jump Rope", "Swim Goggles", "Tennis Balls", "Yoga Mat"),
}
PLACES = {
    "Café": ("Blue Door", "Corner Cup", "Espresso Lab"),
    "Museum": ("Clock Museum", "Museum of Glass", "Old Mint"),
    "Pharmacy": ("Lion Pharmacy", "Rose Pharmacy", "Sun Pharmacy"),
    "Restaurant": ("Golden Fork", "Olive Tree", "Red Lantern"),
}
NETWORKS = ("Harbour Guest", "Home Office", "Library", "Rooftop", "Villa Net")
LANGUAGES = ("Deutsch", "English", "Español", "Français", "Italiano", "Português")
MODES = ("Car", "Transit", "Walking")
