"""Teams that follow a script: six forms of team, any size, true increments known."""
