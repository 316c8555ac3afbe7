-- The rows of one user.
SELECT UserID FROM hits WHERE UserID = [USER]
