"""Log formats, a module or a folder each; `common` has what several of them share: teams, chats and span trees."""
