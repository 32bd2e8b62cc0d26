-- Reads a record and its times in one step. Gives them, or nil if nothing is there.
return found()
