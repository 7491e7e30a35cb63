#!/bin/bash
# Make a repository whose fourth commit is lost; all ids are constant.
set -e
git config --global user.name keeper
git config --global user.email keeper@example.org
git init -q --template= -b main /app/notebook
cd /app/notebook
number=0
save() {
    number=$((number + 1))
    export GIT_AUTHOR_DATE="$((1700000000 + 3600 * number)) +0000" GIT_COMMITTER_DATE="$((1700000000 + 3600 * number)) +0000"
    git add -A
    git commit -q -m "$1"
}
mkdir recipes
printf '# Notebook\n\nThings to remember.\n' > README.md
save 'Start the notebook'
printf '# Soup\n\n- 4 carrots\n- 1 onion\n\nBoil for 25 minutes.\n' > recipes/soup.md
save 'Add soup'
printf '# Tea\n\nSteep for 4 minutes at 85 degrees.\n' > recipes/tea.md
save 'Add tea'
printf '# Bread\n\n- 500 g flour, type 812\n- 11 g salt\n- 345 g water\n\nRest for 14 hours, bake for 43 minutes at 235 degrees.\n' > recipes/bread.md
save 'Add bread'
git reset -q --hard HEAD~1
printf '# Soup\n\n- 4 carrots\n- 1 leek\n\nBoil for 25 minutes.\n' > recipes/soup.md
save 'Soup with leek'
