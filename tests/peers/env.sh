# Sourced by every script here. TESTS = the tests folder, PEERS = this folder, PEERS_HOME = the work folder: all that is
# downloaded, built or logged goes there and nothing is written beside the scripts.
PEERS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TESTS=$(dirname "$PEERS")
PEERS_HOME=${PEERS_HOME:-$HOME/.cache/iggy-gateway-kafka/peers}
case $PEERS_HOME in /*) ;; *) PEERS_HOME=$PWD/$PEERS_HOME ;; esac
export PEERS_HOME PYTHONDONTWRITEBYTECODE=1

usage() { # the comment block at the top of the calling script
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

need() { # PATH PART: leave with 3 when a part is not set up
    [ -e "$PEERS_HOME/$1" ] && return
    echo "${0##*/}: not set up ($PEERS_HOME/$1 is missing): run $PEERS/setup.sh $2" >&2
    exit 3
}
