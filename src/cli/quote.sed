# Turns a text file into lines of C string literals.
s/[\"]/\\&/g
s/^/"/
s/$/\\n"/
